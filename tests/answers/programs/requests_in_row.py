import http.server
import threading
import time
import urllib.request


class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.03)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
threading.Thread(target=server.serve_forever, daemon=True).start()


def get(number):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{number}") as answer:  # answer
        return answer.read()


print(sum(len(get(number)) for number in range(50)))
server.shutdown()
