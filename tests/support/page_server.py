"""An engine's page of metrics, with vLLM's names, for tests/program/live_server.sh: page_server.py FOLDER.

Writes its port to FOLDER/port. At each request it reads FOLDER/mode: ok, old (the names of older releases), nan, negative,
reset (the engine begins anew, once), hang (no answer), drip (a byte at a time), close (hangs up), wrong (no such page), big
(without an end), none (a page of another program)."""
import os
import socket
import sys
import threading
import time

BOUNDS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0]
folder = sys.argv[1]
began = time.monotonic()
was_reset = False


def histogram(name, value, count):
    text = ""
    for bound in BOUNDS:
        text += f'{name}_bucket{{engine="0",le="{bound}"}} {float(count if value <= bound else 0)}\n'
    text += f'{name}_bucket{{engine="0",le="+Inf"}} {float(count)}\n'
    return text + f'{name}_sum{{engine="0"}} {value * count}\n{name}_count{{engine="0"}} {float(count)}\n'


def page(mode):
    tokens = int((time.monotonic() - began) * 800)  # eight requests, a token each in 10 ms
    old = mode == "old"
    waiting = {"nan": "NaN", "negative": "-3.0"}.get(mode, "0.0")
    label = '{engine="0",model_name="a \\"model\\" of {braces}"}'
    text = "# HELP vllm:num_requests_running Number of requests.\n# TYPE vllm:num_requests_running gauge\n"
    text += f"vllm:num_requests_running{label} 8.0\nvllm:num_requests_waiting{label} {waiting}\n"
    text += f"vllm:{'gpu' if old else 'kv'}_cache_usage_perc{label} 0.25\n"
    text += f"vllm:prompt_tokens_total{label} {float(tokens // 2)}\nvllm:generation_tokens_total{label} {float(tokens)}\n"
    text += f"vllm:num_preemptions_total{label} 0.0\nvllm:request_success_total{label} {float(tokens // 100)}\n"
    text += f'vllm:cache_config_info{{block_size="16",num_gpu_blocks="2588",other="None"}} 1.0\n'
    text += histogram("vllm:time_to_first_token_seconds", 0.08, tokens // 100)
    return text + histogram(f"vllm:{'time_per_output_token' if old else 'inter_token_latency'}_seconds", 0.01, tokens)


def answer(connection):
    global began, was_reset
    with connection:
        connection.recv(4096)
        with open(os.path.join(folder, "mode")) as f:
            mode = f.read().strip()
        if mode == "close":
            return
        if mode == "hang":
            time.sleep(30)
            return
        if mode == "wrong":
            connection.sendall(b"HTTP/1.0 404 Not Found\r\n\r\nno")
            return
        if mode == "reset" and not was_reset:
            was_reset, began = True, time.monotonic()
        text = ("python_gc_objects 3.0\n" if mode == "none" else page(mode)).encode()
        head = b"HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n\r\n"
        try:
            if mode == "big":
                connection.sendall(head)
                while True:
                    connection.sendall(b"x 1\n" * 4096)
            if mode == "drip":
                for byte in head + text:
                    connection.sendall(bytes([byte]))
                    time.sleep(0.05)
            connection.sendall(head + text)
        except OSError:
            pass


with socket.create_server(("127.0.0.1", 0)) as server:
    with open(os.path.join(folder, "port.new"), "w") as f:
        f.write(str(server.getsockname()[1]))
    os.rename(os.path.join(folder, "port.new"), os.path.join(folder, "port"))
    while True:
        threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()
