"""Downloads from a real server on this machine, which misbehaves in every way."""

import dataclasses
import hashlib
import http.server
import re
import threading

import pytest

from mixedals.datasets import DATASETS, FetchError, fetch

CONTENT = bytes(range(256)) * 4096


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.close_connection = True
        server = self.server
        if self.path.endswith(".md5"):
            if server.garbled:
                return self.wfile.write(b"what?\r\n")
            return self.answer(server.md5_file, 0)
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        offset = int(found.group(1)) if found and server.ranges else 0
        server.offsets.append(int(found.group(1)) if found else None)
        if offset >= len(server.content):
            self.send_response(416)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        return self.answer(server.content[offset:], offset)

    def answer(self, data, offset):
        server = self.server
        self.send_response(206 if offset else 200)
        if offset:
            self.send_header("Content-Range", f"bytes {offset}-{offset + len(data) - 1}/*")
        if server.length is not None:
            self.send_header("Content-Length", server.length(len(data)))
        self.end_headers()
        if server.break_after and not self.path.endswith(".md5"):
            data = data[: server.break_after]
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.content, server.offsets = CONTENT, []
        server.ranges, server.garbled, server.length, server.break_after = True, False, str, None
        server.md5 = hashlib.md5(CONTENT).hexdigest()
        server.md5_file = f"MD5 (ml-1m.zip) = {server.md5}\n".encode()
        url = f"http://127.0.0.1:{server.server_port}/ml-1m.zip"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        known = dataclasses.replace(DATASETS["ml-1m"], url=url, md5=server.md5)
        monkeypatch.setitem(DATASETS, "ml-1m", known)
        changing = dataclasses.replace(DATASETS["ml-latest"], url=url)
        monkeypatch.setitem(DATASETS, "ml-latest", changing)
        yield server
        server.shutdown()


def assert_fetched(path, folder):
    assert path == folder / "ml-1m.zip"
    assert path.read_bytes() == CONTENT
    assert [p.name for p in folder.iterdir()] == ["ml-1m.zip"]


def test_a_whole_file_comes_once(server, tmp_path):
    assert_fetched(fetch("ml-1m", tmp_path), tmp_path)
    fetch("ml-1m", tmp_path)
    assert server.offsets == [None]


def test_a_checksum_that_is_published_beside_the_file(server, tmp_path):
    assert_fetched(fetch("ml-latest", tmp_path), tmp_path)
    server.md5_file = b"<html>not here</html>"
    with pytest.raises(FetchError, match="no checksum"):
        fetch("ml-latest", tmp_path)


def test_a_garbled_answer(server, tmp_path):
    server.garbled = True
    with pytest.raises(FetchError, match=r"can't be reached \(its answer is garbled.*what\?"):
        fetch("ml-latest", tmp_path)


def test_a_connection_that_breaks_off_is_gone_on_from(server, tmp_path):
    server.break_after = 300_000
    assert_fetched(fetch("ml-1m", tmp_path), tmp_path)
    assert server.offsets == [None, 300_000, 600_000, 900_000]


def test_a_later_call_goes_on(server, tmp_path):
    (tmp_path / "ml-1m.zip.part").write_bytes(CONTENT[:1000])
    assert_fetched(fetch("ml-1m", tmp_path), tmp_path)
    assert server.offsets == [1000]


def test_a_part_that_only_lacks_its_name_is_not_fetched_again(server, tmp_path):
    (tmp_path / "ml-1m.zip.part").write_bytes(CONTENT)
    assert_fetched(fetch("ml-1m", tmp_path), tmp_path)
    assert server.offsets == []


def test_a_server_that_knows_no_ranges_sends_all_again(server, tmp_path):
    server.ranges = False
    (tmp_path / "ml-1m.zip.part").write_bytes(CONTENT[:1000])
    assert_fetched(fetch("ml-1m", tmp_path), tmp_path)


def test_a_part_that_is_longer_than_the_file(server, tmp_path):
    (tmp_path / "ml-1m.zip.part").write_bytes(CONTENT + b"more")
    assert_fetched(fetch("ml-1m", tmp_path), tmp_path)


def test_a_length_that_is_too_great(server, tmp_path):
    server.length = lambda n: str(n + 1000)
    with pytest.raises(FetchError, match="try again"):
        fetch("ml-1m", tmp_path)
    assert not (tmp_path / "ml-1m.zip").exists()


def test_a_length_that_is_too_small(server, tmp_path):
    server.length = lambda n: str(n - 1000)
    with pytest.raises(FetchError, match="another checksum"):
        fetch("ml-1m", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [None, lambda _: "many", lambda _: "-1"])
def test_no_length_at_all(server, tmp_path, length):
    server.length = length
    assert_fetched(fetch("ml-1m", tmp_path), tmp_path)


def test_wrong_bytes_are_thrown_away(server, tmp_path):
    server.content = CONTENT[::-1]
    with pytest.raises(FetchError, match="another checksum"):
        fetch("ml-1m", tmp_path)
    assert list(tmp_path.iterdir()) == []
    server.content = CONTENT
    assert_fetched(fetch("ml-1m", tmp_path), tmp_path)


def test_more_than_any_set_has(server, tmp_path, monkeypatch):
    monkeypatch.setattr("mixedals.datasets.fetching._MOST_BYTES", 500_000)
    with pytest.raises(FetchError, match="more than 500,000 bytes"):
        fetch("ml-1m", tmp_path)


def test_nobody_there_and_nothing_there(server, tmp_path, monkeypatch):
    missing = dataclasses.replace(DATASETS["ml-1m"], url="http://127.0.0.1:9/ml-1m.zip")
    monkeypatch.setitem(DATASETS, "ml-1m", missing)
    with pytest.raises(FetchError, match=r"can't be reached .*give its path"):
        fetch("ml-1m", tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        fetch("ml-1m", tmp_path / "nowhere")


def test_what_cannot_be_fetched():
    with pytest.raises(ValueError, match="Kaggle"):
        fetch("netflix")
    with pytest.raises(ValueError, match="generated"):
        fetch("synthetic")
