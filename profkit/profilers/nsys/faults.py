"""What nsys' error texts mean, and the one line that fixes each. Texts of nsys 2021 to 2026.

nsys often ends with 0 where it made no report, so the text is looked at whatever it ended with.
"""

from __future__ import annotations

from profkit.core.errors import Fault
from profkit.profilers.faults import first_known, known_fault

GRAPH_FIX = "record with nsys profile --cuda-graph-trace=node"
_COMPLETE_FIX = (
    "install all of Nsight Systems (apt-get install nsight-systems-cli), and libdw1 and libelf1; "
    "then: nsys export --type=sqlite FILE.qdstrm"
)

# The most telling first: a missing library also ends in "No reports were generated".
FAULTS = (
    known_fault(
        r"error while loading shared libraries: (\S+?):",
        "nsys lacks the library {0}, so it cannot make a report",
        "apt-get install libdw1 libelf1   (for libdw.so.1 and libelf.so.1); else install all of Nsight Systems",
    ),
    known_fault(
        r"skipping importation of the QDSTRM file|Importer error status|(?:QdstrmImporter|importer)[^\n]*"
        r"(?:not found|no such file|failed|missing)|Generated:\s*\S+\.qdstrm",
        "nsys recorded, but its importer is missing or does not start: it left a .qdstrm and no report",
        _COMPLETE_FIX,
    ),
    known_fault(
        r"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS|Subscribe returned \d+|"
        r"another (?:CUPTI )?(?:client|subscriber|tool)[^\n]*(?:CUPTI|already)",
        "another profiler sits in the same process and holds CUPTI (torch.profiler, dynolog, DCGM)",
        "switch it off: no torch.profiler in the workload, KINETO_USE_DAEMON unset, dcgmi profile --pause",
    ),
    known_fault(
        r"CUPTI_ERROR_(?:INSUFFICIENT_PRIVILEGES|VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)",
        "the driver does not let this user trace the device",
        "run it under sudo -E, or open the counters: NVreg_RestrictProfilingToAdminUsers=0",
    ),
    known_fault(
        r"(?:driver|CUPTI)[^\n]*(?:insufficient|too old|not compatible|unsupported)|CUPTI_ERROR_NOT_COMPATIBLE|"
        r"CUDA (?:driver )?version[^\n]*(?:not supported|newer|older)",
        "this nsys and this CUDA driver do not fit together",
        "install an nsys as new as the driver, or a newer driver",
    ),
    known_fault(
        r"SKIPPED: .*does not contain CUDA kernel data",
        "the trace holds no kernel: none was launched in it, or CUDA graphs were traced as a whole",
        GRAPH_FIX,
    ),
    known_fault(
        r"SKIPPED: .*does not contain ([^\n.]+?)\.?$",
        "the trace does not contain {0}",
    ),
    known_fault(
        r"(?:permission denied|cannot create|unable to create|failed to create)[^\n]*/nvidia/nsight[-_]systems|"
        r"/nvidia/nsight[-_]systems[^\n]*(?:permission denied|read-only)",
        "nsys cannot write its working folder, which belongs to another user",
        "TMPDIR=$HOME/tmp nsys profile ...   (a folder of your own)",
    ),
    known_fault(
        r"No space left on device|not enough (?:disk )?space",
        "the disk is full, so nsys could not write its report",
        "df -h   (nsys needs room in TMPDIR as well)",
    ),
    known_fault(
        r"(?:unrecogni[sz]ed option|unknown (?:option|argument)) '?([^'\n]+)'?",
        "this nsys does not know the option {0}",
        "install a newer nsys",
    ),
    known_fault(
        r"No reports were generated|no report (?:file )?(?:was|has been) generated",
        "nsys made no report: the part to record never began (cudaProfilerStart was not called), or the workload "
        "was killed",
        "record the whole process, or mark the part with profkit.region",
        consequence=True,
    ),
    known_fault(
        r"Executable '([^'\n]+)' not found|(?:failed|unable) to (?:launch|execute|start)[^\n]*application",
        "nsys could not start the workload: no such program, or it is not executable",
    ),
    known_fault(
        r"(?:is not a valid|invalid|corrupt\w*|unsupported)[^\n]*(?:report|\.nsys-rep|\.qdrep)|"
        r"(?:report|\.nsys-rep|\.qdrep)[^\n]*(?:corrupt|newer version|invalid|unsupported version)",
        "nsys cannot read this report: it is damaged, or from a newer nsys",
        "read it with the nsys that recorded it, or a newer one",
    ),
)


def explain(text: str, returncode: int) -> Fault | None:
    """The fault that nsys printed as `text` before it ended with `returncode`; None where it is not known."""
    if (fault := first_known(FAULTS, text)) is not None:
        return fault
    if returncode in (-9, 137):
        return Fault(
            "nsys was killed (SIGKILL), most often for want of memory", "a smaller case, or more memory"
        )
    return None
