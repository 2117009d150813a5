# SPDX-License-Identifier: Apache-2.0
"""`pipewright fetch` against a server of our own: what is whole is left alone, what is cut goes on."""

import http.server
import os
import re
import shutil
import signal
import ssl
import subprocess
import threading

import harness
import skips
from harness import DATA, DATA_DIR, EXPERIMENT, INTERRUPTED

BINARY = os.environ["PIPEWRIGHT_SMALL_SOURCES_BINARY"]  # knows `small` and `pair`, see small_sources.cpp
SMALL = bytes(i * i // 7 % 251 for i in range(200_000))
PAIR = {"/one.txt": b"one\n" * 1000, "/deep/two.txt": b"two\n" * 500}


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves server.files as server.behaviour says; notes the range that each request asks for."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        asked = self.headers.get("Range")
        server.requests.append((self.path, asked))
        if self.path in server.moved:
            self.answer(302, b"moved", Location=server.moved[self.path])
            return
        if self.path not in server.files:
            self.answer(server.refusal, b"a page, and no data")
            return
        content = server.files[self.path]
        start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked and server.ranges else 0
        if asked and server.ranges and start >= len(content):
            self.answer(416, b"")
            return
        partial = server.insists or (asked and server.ranges)
        self.send_response(206 if partial else 200)
        if partial:
            self.send_header("Content-Range", f"bytes {start + server.shift}-{len(content) - 1}/{len(content)}")
        if server.says_length:
            self.send_header("Content-Length", str(len(content) - start))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        stop = server.cuts.pop(0) if server.cuts else len(content)
        self.wfile.write(content[start:stop])
        self.wfile.flush()
        if stop < len(content):
            server.goes_on.wait()
            self.close_connection = True

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    """On a free port. `cuts`: where to stop in the file, for the requests to come; a request that
    is cut ends when `goes_on` is set."""

    daemon_threads = True

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.moved, self.cuts, self.requests = files, {}, [], []
        self.ranges, self.says_length, self.shift, self.refusal = True, True, 0, 404
        self.insists = False  # on a range, asked for or not
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.address = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_):
        pass  # the program has hung up


class Fetch(harness.EndToEnd):
    def serve(self, files):
        server = Server(files)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.addCleanup(server.goes_on.set)
        return server

    def environment(self):
        return {"no_proxy": "*", "NO_PROXY": "*", "HOME": str(self.folder)}

    def start_fetch(self, *arguments, environment=None):
        before, harness.BINARY = harness.BINARY, BINARY
        try:
            return self.start("fetch", *arguments, environment=self.environment() | (environment or {}))
        finally:
            harness.BINARY = before

    def fetch(self, *arguments, code=harness.FINE, environment=None):
        done = self.finish(self.start_fetch(*arguments, environment=environment))
        self.assertEqual(done.code, code, f"fetch {' '.join(map(str, arguments))}\n{done.out}{done.err}")
        if code != harness.FINE:
            self.assertNotIn("usage:", done.err)
        return done

    def small(self, server, *arguments, code=harness.FINE, environment=None):
        return self.fetch(
            "small",
            "--to",
            "data",
            "--address",
            f"{server.address}/small.bin",
            *arguments,
            code=code,
            environment=environment,
        )

    def part(self):
        return self.folder / "data/small.bin.part"

    def assert_fetched(self):
        self.assertEqual((self.folder / "data/small.bin").read_bytes(), SMALL)
        self.assertEqual(sorted(file.name for file in (self.folder / "data").iterdir()), ["small.bin"])



class Certificates(Fetch):
    """Of a server that shows one of its own."""

    PLACES = ("pki/tls/certs/ca-bundle.crt", "ssl/certs/ca-certificates.crt", "ssl/ca-bundle.pem", "ssl/cert.pem")

    def setUp(self):
        super().setUp()
        (self.folder / "trusted").mkdir()
        self.certificate, key = self.folder / "trusted/own.pem", self.folder / "key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=own", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", key, "-out", self.certificate], check=True, capture_output=True,
        )  # fmt: skip
        subprocess.run(["openssl", "rehash", self.certificate.parent], check=True, capture_output=True)
        self.server = self.serve({"/small.bin": SMALL})
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.address = self.server.address.replace("http", "https")

    def environment(self):
        return super().environment() | {"CURL_CA_BUNDLE": "", "SSL_CERT_FILE": "", "SSL_CERT_DIR": ""}

    def test_an_unknown_one_is_refused(self):
        self.assertRegex(self.small(self.server, code=DATA).err, r"certificate.*; SSL_CERT_FILE names a file of other certificates")
        self.assertFalse((self.folder / "data/small.bin").exists())
        self.part().unlink()

    def test_variables_name_others(self):
        for name in ("CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"):
            with self.subTest(name):
                value = self.certificate.parent if name == "SSL_CERT_DIR" else self.certificate
                self.small(self.server, environment={name: str(value)})
                self.assert_fetched()
                shutil.rmtree(self.folder / "data")

    def test_those_of_the_system_are_found_wherever_it_keeps_them(self):
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            skips.lacks("other-users", "only root can hide the files of a system")
        for place in self.PLACES:
            with self.subTest(place):
                script = f'mount -t tmpfs none /etc; mkdir -p /etc/{os.path.dirname(place)}; cp {self.certificate} /etc/{place}; exec "$@"'
                words = [BINARY, "fetch", "small", "--to", "data", "--address", f"{self.server.address}/small.bin"]
                done = subprocess.run(["unshare", "--mount", "sh", "-ec", script, "sh", *words], cwd=self.folder, capture_output=True,
                                      text=True, env=os.environ | self.environment())  # fmt: skip
                self.assertEqual(0, done.returncode, done.stderr)
                self.assert_fetched()
                shutil.rmtree(self.folder / "data")


class Whole(Fetch):
    def test_a_file_is_downloaded_and_then_left_alone(self):
        server = self.serve({"/small.bin": SMALL})
        first = self.small(server)
        self.assertEqual(first.out.splitlines()[0], f"downloaded {self.folder}/data/small.bin")
        self.assertRegex(first.out, r"cd \S+/data && tar xzf small\.bin\n$")
        self.assertRegex(first.err, rf"^small\.bin: 195\.3 KiB from {server.address}/small\.bin\n")
        self.assertNotIn("\r", first.err)
        self.assert_fetched()
        again = self.small(server)
        self.assertEqual(again.out.splitlines()[0], f"already there: {self.folder}/data/small.bin")
        self.assertEqual(again.err, "")
        self.assertEqual(server.requests, [("/small.bin", None)])

    def test_where_the_data_set_looks_is_where_it_goes(self):
        server = self.serve({"/x/small.bin": SMALL})
        self.fetch("small", "--address", f"{server.address}/x/")
        self.assertEqual((self.folder / "data/small/small.bin").read_bytes(), SMALL)

    def test_several_files_have_their_names_behind_the_address(self):
        for end in ("", "/"):
            with self.subTest(end):
                server = self.serve({f"/copy{path}": content for path, content in PAIR.items()})
                done = self.fetch("pair", "--to", f"to{end}", "--address", f"{server.address}/copy{end}")
                self.assertEqual(done.out.count("downloaded "), 2)
                self.assertIn(f"--set dataset.root={self.folder}/to", done.out)
                for path, content in PAIR.items():
                    self.assertEqual((self.folder / f"to{path}").read_bytes(), content)
                shutil.rmtree(self.folder / "to")

    def test_of_several_files_only_what_is_missing(self):
        server = self.serve(PAIR)
        self.write("to/one.txt", PAIR["/one.txt"])
        self.fetch("pair", "--to", "to", "--address", server.address)
        self.assertEqual(server.requests, [("/deep/two.txt", None)])

    def test_a_redirection_is_followed_but_not_to_other_protocols(self):
        server = self.serve({"/elsewhere?x=../../y": SMALL})
        server.moved = {"/small.bin": f"{server.address}/elsewhere?x=../../y"}
        self.small(server)
        self.assert_fetched()
        shutil.rmtree(self.folder / "data")
        secret = self.write("secret", SMALL)
        server.moved = {"/small.bin": f"file://{secret}"}
        done = self.small(server, code=DATA)
        self.assertRegex(done.lines[-1], rf"^{server.address}/small\.bin: cannot download: .*[Pp]rotocol")
        self.part().unlink(missing_ok=True)

    def test_a_server_that_says_no_length(self):
        server = self.serve({"/small.bin": SMALL})
        server.says_length = False
        self.small(server)
        self.assert_fetched()


class GoingOn(Fetch):
    def test_what_is_there_is_not_asked_for_again(self):
        server = self.serve({"/small.bin": SMALL})
        self.write("data/small.bin.part", SMALL[:70_000])
        self.small(server)
        self.assert_fetched()
        self.assertEqual(server.requests, [("/small.bin", "bytes=70000-")])

    def test_a_whole_part_is_only_checked(self):
        server = self.serve({})
        self.write("data/small.bin.part", SMALL)
        self.small(server)
        self.assert_fetched()
        self.assertEqual(server.requests, [])

    def test_a_redirected_rest(self):
        server = self.serve({"/other": SMALL})
        server.moved = {"/small.bin": "/other"}
        self.write("data/small.bin.part", SMALL[:70_000])
        self.small(server)
        self.assert_fetched()
        self.assertEqual(server.requests[-1], ("/other", "bytes=70000-"))

    def test_a_server_without_ranges_sends_all_again(self):
        server = self.serve({"/small.bin": SMALL})
        server.ranges = False
        self.write("data/small.bin.part", b"x" * 70_000)
        self.small(server)
        self.assert_fetched()
        self.assertEqual(len(server.requests), 1)

    def test_a_server_that_sends_another_range_is_asked_for_all(self):
        server = self.serve({"/small.bin": SMALL})
        server.shift = 5
        self.write("data/small.bin.part", SMALL[:70_000])
        self.small(server)
        self.assert_fetched()
        self.assertEqual([asked for _, asked in server.requests], ["bytes=70000-", None])

    def test_a_server_that_insists_on_another_range_is_named_with_that_reason(self):
        server = self.serve({"/small.bin": SMALL})
        server.shift, server.insists = 5, True
        done = self.small(server, code=DATA)
        self.assertRegex(done.err, r"cannot download: the server sends the file from byte 5 on, but was asked from byte 0")
        self.part().unlink(missing_ok=True)  # it stays, for another try

    def test_a_part_that_is_too_long_is_started_again(self):
        server = self.serve({"/small.bin": SMALL})
        self.write("data/small.bin.part", SMALL + b"x")
        self.small(server)
        self.assert_fetched()

    def test_a_cut_connection_is_taken_up_again(self):
        server = self.serve({"/small.bin": SMALL})
        server.cuts = [50_000, 120_000]
        done = self.small(server)
        self.assert_fetched()
        self.assertEqual(
            [asked for _, asked in server.requests], [None, "bytes=50000-", "bytes=120000-"]
        )
        self.assertEqual(done.err.count("; going on\n"), 2)

    def test_a_connection_that_brings_nothing_more_ends_it_and_the_part_stays(self):
        server = self.serve({"/small.bin": SMALL})
        server.cuts = [50_000, 50_000]
        done = self.small(server, code=DATA)
        self.assertRegex(
            done.lines[-1],
            rf"^{server.address}/small\.bin: cannot download: .*; 48\.8 KiB of 195\.3 KiB are in "
            rf"{self.part()}, the same command goes on",
        )
        self.assertEqual(self.part().read_bytes(), SMALL[:50_000])
        self.small(server)
        self.assert_fetched()
        self.assertEqual(server.requests[-1], ("/small.bin", "bytes=50000-"))

    def test_a_cut_connection_of_a_server_that_says_no_length(self):
        server = self.serve({"/small.bin": SMALL})
        server.says_length = False
        server.cuts = [50_000]
        self.small(server)
        self.assert_fetched()

    def test_a_stalled_connection_counts_as_lost(self):
        server = self.serve({"/small.bin": SMALL})
        server.cuts = [50_000]
        server.goes_on.clear()
        done = self.small(server, "--patience", "1")
        self.assertIn("nothing arrived for 1 s; going on\n", done.err)
        self.assertRegex(done.err, r"(?m)^small\.bin  \S+ KiB of 195\.3 KiB, \d+ %, .*/s, .* left$")
        self.assert_fetched()

    def test_interrupted_and_taken_up_again(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                server = self.serve({"/small.bin": SMALL})
                server.cuts = [50_000]
                server.goes_on.clear()
                process = self.start_fetch(
                    "small", "--to", "data", "--address", f"{server.address}/small.bin"
                )
                self.wait_until(lambda: self.part().exists() and self.part().stat().st_size == 50_000, process)
                process.send_signal(number)
                done = self.finish(process)
                self.assertEqual(done.code, INTERRUPTED, done.err)
                self.assertRegex(
                    done.lines[-1], rf"^{self.part()}: interrupted; 48\.8 KiB of .* the same command goes on$"
                )
                server.goes_on.set()
                self.small(server)
                self.assert_fetched()
                self.assertEqual(server.requests[-1], ("/small.bin", "bytes=50000-"))
                shutil.rmtree(self.folder / "data")

    def test_two_at_a_time_do_not_mix(self):
        server = self.serve({"/small.bin": SMALL})
        server.cuts = [50_000]
        server.goes_on.clear()
        first = self.start_fetch("small", "--to", "data", "--address", f"{server.address}/small.bin")
        self.wait_until(lambda: self.part().exists() and self.part().stat().st_size == 50_000, first)
        self.assert_errors(self.small(server, code=DATA), r"small\.bin\.part: another `pipewright fetch`")
        server.goes_on.set()
        self.assertEqual(self.finish(first).code, harness.FINE)
        self.assert_fetched()


class Refused(Fetch):
    def tearDown(self):
        self.part().unlink(missing_ok=True)
        super().tearDown()

    def test_a_file_that_the_server_does_not_have(self):
        server = self.serve({})
        for status in (404, 403, 500):
            server.refusal = status
            done = self.small(server, code=DATA)
            self.assertRegex(
                done.lines[-1],
                rf"^{server.address}/small\.bin: cannot download: the server answers with status {status}.*"
                r"--address.*http://home\.example$",
            )
        self.assertFalse((self.folder / "data/small.bin").exists())

    def test_a_refusal_keeps_what_is_there(self):
        server = self.serve({})
        self.write("data/small.bin.part", SMALL[:70_000])
        self.assertRegex(self.small(server, code=DATA).lines[-1], r"the server answers with status 404")
        self.assertEqual(self.part().read_bytes(), SMALL[:70_000])

    def test_no_server(self):
        done = self.fetch("small", "--to", "data", code=DATA)  # its own address: nobody listens
        self.assertRegex(done.lines[-1], r"^http://127\.0\.0\.1:9/small\.bin: cannot download: .*onnect")
        self.assertRegex(done.lines[-1], r"; check the network and its proxy; give the address of a copy with --address")

    def test_a_file_of_another_size_is_not_downloaded(self):
        for content in (SMALL[:-1], SMALL + b"x"):
            server = self.serve({"/small.bin": content})
            self.write("data/small.bin.part", SMALL[:70_000])
            self.assertRegex(
                self.small(server, code=DATA).lines[-1],
                rf"the server's file has {len(content)} bytes, the official one 200000",
            )
            self.assertEqual(self.part().read_bytes(), SMALL[:70_000])

    def test_a_file_without_an_end(self):
        server = self.serve({"/small.bin": SMALL + b"x" * 100_000})
        server.says_length = False
        self.assertRegex(self.small(server, code=DATA).lines[-1], r"sends more than the 200000 bytes")
        self.assertFalse((self.folder / "data/small.bin").exists())

    def test_wrong_content_is_thrown_away(self):
        wrong = SMALL[:1000] + b"?" + SMALL[1001:]
        server = self.serve({"/small.bin": wrong})
        done = self.small(server, code=DATA)
        self.assertRegex(
            done.lines[-1], r"has md5 [0-9a-f]{32}, expected [0-9a-f]{32}; it has been thrown away"
        )
        self.assertEqual(list((self.folder / "data").iterdir()), [])
        server.files = {"/small.bin": SMALL}
        self.small(server)
        self.assert_fetched()

    def test_a_sha256_that_is_wrong(self):
        server = self.serve(PAIR | {"/deep/two.txt": b"TWO\n" * 500})
        done = self.fetch("pair", "--to", "to", "--address", server.address, code=DATA)
        self.assertRegex(done.lines[-1], r"has SHA-256 [0-9a-f]{64}, expected [0-9a-f]{64}")
        self.assertEqual((self.folder / "to/one.txt").read_bytes(), PAIR["/one.txt"])

    def test_another_file_of_that_name_stays(self):
        server = self.serve({"/small.bin": SMALL})
        for content, reason in (
            (b"mine", "has 4 bytes instead of 200000"),
            (bytes(200_000), "its md5 is [0-9a-f]{32} instead of"),
        ):
            mine = self.write("data/small.bin", content)
            self.assert_errors(self.small(server, code=DATA), rf"^{mine}: is there, but {reason}.*--to")
            self.assertEqual(mine.read_bytes(), content)
        self.assertEqual(server.requests, [])

    @skips.needs("test-programs", harness.FAILING_FILES)
    def test_a_full_disk_keeps_what_is_there(self):
        server = self.serve({"/small.bin": SMALL})
        full = self.failing("small.bin.part", "write", 3)
        done = self.small(server, code=DATA, environment=full)
        self.assertRegex(
            done.lines[-1], rf"^{self.part()}: cannot write: No space left on device; make room.*--to.*goes on"
        )
        self.assertGreater(self.part().stat().st_size, 0)
        self.small(server)
        self.assert_fetched()
        self.assertRegex(server.requests[-1][1], r"^bytes=[1-9]\d*-$")

    def test_a_folder_that_cannot_be(self):
        server = self.serve({"/small.bin": SMALL})
        self.write("file", "x")
        done = self.fetch("small", "--to", "file", "--address", server.address, code=DATA)
        self.assertRegex(done.lines[-1], r"^\S+/file: cannot make the folder: there is a file of this name")


class Words(Fetch):
    def test_without_a_name_it_says_what_there_is(self):
        page = self.pipewright("fetch").out
        self.assertRegex(page, r"(?m)^  cifar10 +162\.2 MiB  CIFAR-10, https://www\.cs\.toronto\.edu/~kriz/")
        fetched, by_hand = page.split("\n\n")
        self.assertIn("  fashion_mnist ", fetched)
        self.assertRegex(by_hand, r"(?m)^  imagenet_folder .*https://image-net\.org$")

    def test_an_unknown_name(self):
        self.assert_errors(self.fetch("cifar1O", code=EXPERIMENT), r"called 'cifar1O'; did you mean 'cifar10'\?")
        self.assert_errors(
            self.fetch("cola", code=EXPERIMENT), r"^'cola' has to be downloaded by hand: .*https://gluebenchmark\.com"
        )

    def test_addresses_and_patience_that_cannot_be(self):
        for wrong in ("file:///etc/passwd", "ftp://127.0.0.1/x", "small.bin"):
            done = self.fetch("small", "--address", wrong, code=EXPERIMENT)
            self.assert_errors(done, rf"^--address is '{re.escape(wrong)}'; expected http://")
        self.assert_errors(self.fetch("small", "--patience", "0", code=EXPERIMENT), r"^--patience is 0")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_run_without_data_says_what_to_fetch(self):
        self.write("x.yaml", {"dataset": {"name": "mnist", "root": "none"}, "model": {"name": "cnn", "channels": 1, "size": 28}})
        done = self.pipewright("check", "x.yaml", code=DATA)
        self.assert_errors(done, r"; `pipewright fetch mnist` downloads MNIST$")


class Real(Fetch):
    def test_tiny_shakespeare_can_be_read_where_it_goes(self):
        file = DATA_DIR / "tinyshakespeare" / "input.txt"
        if not file.is_file():
            skips.lacks("real-data", f"there is no {file}")
        server = self.serve({"/input.txt": file.read_bytes()})
        self.fetch("text", "--address", f"{server.address}/input.txt")
        self.write("x.yaml", {"dataset": {"name": "text"}, "model": {"name": "gpt"}})
        page = self.pipewright("check", "x.yaml", environment=self.environment()).out
        self.assertRegex(page, r"data +\d+ training")


if __name__ == "__main__":
    harness.main()
