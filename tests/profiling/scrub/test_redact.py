"""What is taken out of text, and what stays."""

from __future__ import annotations

import pytest

from profkit.profilers.redact import PATH, TOKEN, Redactor, environment_variables


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open /home/ann/net/train.py:12", "open /folder-1/train.py:12"),
        ("/home/ann", "/folder-1"),
        ("ran /srv/company/bin/tool", "ran /folder-1"),
        ("-I/home/ann/inc -o/home/ann/x.o", "-I/folder-1 -o/folder-2/x.o"),
        ("~/net/train.py", "/folder-1/train.py"),
        (r"C:\Users\ann\net.cu", "/folder-1/net.cu"),
        ("C:/Users/ann/net.cu", "/folder-1/net.cu"),
        ("at C://Users//ann//net.cu:12", "at /folder-1/net.cu:12"),
        ("a ratio 3 a:/b per c", "a ratio 3 a:/b per c"),
        ("file:/home/ann/a.py", "/folder-1/a.py"),
        (
            "/home/ann/.venv/lib/python3.11/site-packages/torch/nn/modules/linear.py",
            "/python/lib/python3.11/site-packages/torch/nn/modules/linear.py",
        ),
        ("/home/ann/.venv/lib/python3.11/site-packages/acme/x.py", "/folder-1/x.py"),
        ("peer 10.1.2.33 says", "peer <address> says"),
        ("00:1a:2b:3c:4d:5e", "<address>"),
        ("GPU-7d1b1c9e-1111-2222-3333-444455556666", "00000000-0000-0000-0000-000000000000"),
        ("ann@example.org", "<mail>"),
        ("https://ann:pa55word@host/x", "https://<removed>@host/x"),
        ("WANDB_API_KEY=0123456789abcdef next", "WANDB_API_KEY=<removed> next"),
        ("uses hf_abcdefghijklmnop here", "uses <token> here"),
    ],
)
def test_what_tells_of_a_person_or_a_machine_goes(text: str, expected: str) -> None:
    assert Redactor().text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(T3)",
        "ampere_sgemm_128x64_tn",
        "580.159.04",
        "2025.3.1.0 (build 36398880)",
        "bytes/s and FLOP/byte",
        "1/2 of 3/4",
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/usr/local/cuda-12.8/targets/x86_64-linux/include/cuda_fp16.hpp",
        "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html",
        "127.0.0.1",
        "step/forward",
        "",
    ],
)
def test_what_every_machine_says_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_two_folders_stay_two_and_one_stays_one() -> None:
    told = Redactor()
    assert told.text("/a1/b1/x.py") != told.text("/a1/c1/x.py")
    assert told.text("/a1/b1/x.py").rpartition("/")[0] == told.text("/a1/b1/y.py").rpartition("/")[0]


def test_what_is_known_goes_wherever_it_stands_and_a_kernel_keeps_its_name_but_for_secrets() -> None:
    told = Redactor()
    told.learn_environment(
        "RUN=2026-mlp-ann-7\nMODE=gated_mlp_training\nAPI_TOKEN=correct-horse\nHOME=/home/ann bell\nS=abc"
    )
    assert told.text("2026-mlp-ann-7 with correct-horse abc") == "<environment> with <token> abc"
    assert told.text("gated_mlp_training") == "gated_mlp_training"  # a word is as good a name of a range
    assert told.text("see /home/ann bell/x y/z.cu") == told.text("see /home/ann bell/x") + " y/z.cu"
    assert "bell" not in told.text("at /home/ann bell")
    assert told.kernel("gated_mlp_training_kernel") == "gated_mlp_training_kernel"
    assert told.kernel("k_correct-horse") == "k_removed"


def test_the_list_names_kinds_and_counts_and_no_secret() -> None:
    told = Redactor()
    told.learn("correct-horse", TOKEN)
    told.text("correct-horse in /home/ann/x.py")
    told.text("correct-horse in /home/ann/x.py")
    found = {one.kind: one for one in told.removed()}
    assert found[TOKEN].count == 2
    assert found[PATH].examples == ("/folder-1/x.py",)
    assert "horse" not in str(found)
    assert "ann" not in str(found)


@pytest.mark.parametrize(
    "text",
    [
        '{"A": "1", "B": "x=y"}',
        '["A=1", "B=x=y"]',
        "A=1\nB=x=y",
        "A=1\0B=x=y",
        "A=1;B=x=y",
        '[{"A": "1"}, "B=x=y"]',
    ],
)
def test_an_environment_is_read_however_it_is_written(text: str) -> None:
    assert list(environment_variables(text)) == [("A", "1"), ("B", "x=y")]
