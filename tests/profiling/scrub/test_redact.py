"""What is taken out of text, and what stays."""

from __future__ import annotations

import pytest

from profkit.profilers.redact import COMMAND, PATH, TOKEN, Redactor


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open /home/ann/net/train.py:12", "open /folder-1/train.py:12"),
        ("/home/ann", "/folder-1"),
        ("-I/home/ann/inc -o/home/ann/x.o", "-I/folder-1 -o/folder-2/x.o"),
        ("~/net/train.py", "/folder-1/train.py"),
        ("at //nas/ann/net/train.py", "at /folder-1/train.py"),
        ("mysql -phunter2 db", "mysql -p<removed> db"),
        (r"C:\Users\ann\net.cu", "/folder-1/net.cu"),
        ("at C://Users//ann//net.cu:12", "at /folder-1/net.cu:12"),
        (
            "/home/ann/.venv/lib/python3.11/site-packages/torch/nn/modules/linear.py",
            "/python/lib/python3.11/site-packages/torch/nn/modules/linear.py",
        ),
        ("/home/ann/.venv/lib/python3.11/site-packages/acme/x.py", "/folder-1/x.py"),
        ("peer 10.1.2.33 says", "peer <address> says"),
        ("00:1a:2b:3c:4d:5e", "<address>"),
        ("GPU-7d1b1c9e-1111-2222-3333-444455556666", "00000000-0000-0000-0000-000000000000"),
        ("ann@example.org", "<mail>"),
        ("https://ann:pa55word@host/x", "https://<address>"),
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
        "bytes/s and FLOP/byte",
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/usr/local/cuda-12.8/targets/x86_64-linux/include/cuda_fp16.hpp",
        "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html",
        "127.0.0.1",
        "step/forward",
        "std::token::kind<auth::key>(cache_key=4, dead::beef, abc::f32)",
        "max_token: 128, pad_token='<pad>', --tokenizer gpt2, the token is 3",
        "torch/nn/modules/module.py(1501): _call_impl",
        "aten/src/ATen/native/cuda/Loops.cuh",
        "threading.local and self.internal(x), jdk.internal.misc",
        "a // b; x //= 2 // y/z  // and/or",
        r"\\n\\t \d+\w*",
        "",
    ],
)
def test_what_every_machine_says_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_two_folders_stay_two_and_one_stays_one() -> None:
    told = Redactor()
    assert told.text("/a1/b1/x.py") != told.text("/a1/c1/x.py")
    assert told.text("/a1/b1/x.py").rpartition("/")[0] == told.text("/a1/b1/y.py").rpartition("/")[0]


def test_what_is_known_goes_wherever_it_stands() -> None:
    told = Redactor()
    told.learn_command(
        ("train.py", "--run=2026-mlp-ann-7", "gated_mlp_training", "--password", "abcde", "-n", "4")
    )
    told.learn("/home/ann bell", PATH)
    assert told.text("2026-mlp-ann-7 abcde gated_mlp_training") == "<command> <token> gated_mlp_training"
    assert told.text("see /home/ann bell/x y/z.cu") == told.text("see /home/ann bell/x") + " y/z.cu"
    assert "bell" not in told.text("at /home/ann bell")


def test_of_a_command_in_json_what_is_harmless_stays_and_public_names_stay() -> None:
    told = Redactor()
    command = ["/opt/x/python", "/home/ann/train.py", "--out", "o", "--name", "ann"]
    body = {"command": command, "name": "a/b/c.py", "n": [1, None]}
    assert told.data(body, frozenset({"a/b/c.py"})) == body | {
        "command": ["python", "train.py", "--out", "o", "--name", "[masked]"]
    }
    assert [one.kind for one in told.removed()] == [COMMAND]


def test_the_list_names_kinds_and_counts_and_no_secret() -> None:
    told = Redactor()
    told.learn("correct-horse", TOKEN)
    told.text("correct-horse in /home/ann/x.py")
    told.text("correct-horse in /home/ann/x.py")
    found = {one.kind: one for one in told.removed()}
    assert found[TOKEN].count == 2
    assert found[PATH].count == 2
    assert "horse" not in str(found)
    assert "ann" not in str(found)


# A secret word in each form in which people and programs write one; whatever else stays, the word goes.
PLANTED = (
    "token=Pl4nted", "password: Pl4nted", "Authorization: Bearer Pl4nted.x.y", "GET /v1/run?key=Pl4nted&n=1",
    "-----BEGIN PRIVATE KEY-----\nPl4nted\n-----END PRIVATE KEY-----", r'{\"api_key\": \"Pl4nted\"}',
    "X-Api-Key: Pl4nted",
        "train --password Pl4nted --lr 1", "run --secret=Pl4nted", "Cookie: sid=Pl4nted; a=b", "hf_Pl4ntedPl4nted",
    "s3://Pl4nted/checkpoints/x.pt", "gs://bucket/Pl4nted", "postgres://ann:Pl4nted@db/x", "https://git.acme.example/Pl4nted",
    r"\\server\Pl4nted\x.pt", r"\\\\Pl4nted\\share\\x.pt", "nas01:/Pl4nted/data/x.pt", "ann@gpu1:/vol/Pl4nted/x",
    "../Pl4nted/x.py", "./work/Pl4nted/x.py", "work/Pl4nted/x.py", "Pl4nted-7.cluster.local", "node-3.Pl4nted.internal",
    "build.Pl4nted.corp", "C:\\work\\Pl4nted\\x.cu", "/Pl4nted/net/x.py", "~/Pl4nted/x.py", "Pl4nted@example.org",
    "PASSPHRASE='Pl4nted'", "PATH=/usr/bin:/opt/Pl4nted/bin:/home/Pl4nted/bin", "LD_LIBRARY_PATH=:/opt/Pl4nted/lib",
)  # fmt: skip


@pytest.mark.parametrize("text", PLANTED)
def test_a_secret_goes_in_whatever_form_it_is_written(text: str) -> None:
    scrubber = Redactor()
    for form in (text, f"step 3, {text} done", f'"{text}"'):
        assert "Pl4nted" not in scrubber.text(form), scrubber.text(form)
    assert sum(one.count for one in scrubber.removed()) >= 3


@pytest.mark.parametrize(
    "address",
    ["2001:db8::7:1", "fe80::1a2b:3cff:fe4d:5e6f%eth0", "fd12:3456:789a:1::1", "2a00:1450:4001:81b::200e"],
)
def test_an_address_of_version_6_goes(address: str) -> None:
    assert (
        Redactor().text(f"connect [{address}]:443, {address} and") == "connect [<address>]:443, <address> and"
    )


def test_names_are_learnt_from_fields_and_homes_and_common_words_are_none() -> None:
    told = Redactor()
    told.learn_text(
        '{"hostname": "gpu7.acme.example", "user": "annbell"}  in /home/jqx1/net and "host": "localhost"'
    )
    told.learn_text("/home/project/x /home/ubuntu host: pinned user: cuda")
    told.learn_text("ran by ssh -p 22 jocarter@render31 and rsync -a x kimlee@vault9:y, a@b")
    assert told.text("jocarter, kimlee, render31, vault9") == "<user>, <user>, <host>, <host>"
    assert told.text("gpu7 and gpu7.acme.example, gpu77") == "<host> and <host>, gpu77"
    assert told.text("jqx1_step of annbell's project, pinned by localhost") == (
        "<user>_step of <user>'s project, pinned by localhost"
    )
