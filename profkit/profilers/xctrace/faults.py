"""What xctrace's and xcrun's error texts mean, and the one line that fixes each. Texts of Xcode 12 to 27.

xctrace often ends with 0 where it recorded or exported nothing, so the text is looked at whatever it ended with.
"""

from __future__ import annotations

from profkit.core.errors import Fault
from profkit.profilers.faults import first_known, known_fault
from profkit.profilers.xctrace.command import CUT

SELECT_FIX = "install Xcode, then: sudo xcode-select -s /Applications/Xcode.app/Contents/Developer"
UNSUPPORTED_COUNTERS = (
    "this Xcode has no set of GPU counters for this chip that can be recorded from a command line"
)
COUNTERS_FIX = (
    "record with a template of your own: Instruments, Metal System Trace, GPU > Counter Set > Performance Limiters, "
    "save as a template, xctrace record --template NAME"
)
LICENCE_EXIT = 69

# The most telling first: what follows from another fault stands below it.
FAULTS = (
    known_fault(
        r"requires Xcode, but active developer directory '([^'\n]*)' is a command line tools instance",
        "only the command line tools are selected ({0}), and xctrace is a part of Xcode itself",
        SELECT_FIX,
    ),
    known_fault(
        r"unable to find utility \"xctrace\"|tool 'xctrace' not found|xctrace[^\n]{0,40}tool not found|"
        r"^\s*(?:xcrun: )?(?:error: )?tool not found",
        "the selected developer folder has no xctrace: it is a part of Xcode itself, and /usr/bin/xctrace only a stub",
        SELECT_FIX,
    ),
    known_fault(
        r"invalid active developer path \(([^)\n]*)\)|no developer tools were found|"
        r"active developer (?:path|directory)[^\n]*(?:does not exist|not found)",
        "there is no Xcode where it is looked for ({0})",
        SELECT_FIX,
    ),
    known_fault(
        r"agree(?:d)? to the (?:Xcode|Apple SDKs)[^\n]*license|Xcode[^\n]*license agreements?|"
        r"license[^\n]*(?:not (?:been )?accepted|has not been agreed)",
        "the licence of Xcode has not been accepted",
        "sudo xcodebuild -license accept",
    ),
    known_fault(
        r"(?:install|missing)[^\n]*(?:required|additional) components|xcodebuild -runFirstLaunch",
        "Xcode has not finished its installation",
        "sudo xcodebuild -runFirstLaunch",
    ),
    known_fault(
        r"developer mode (?:is |)(?:disabled|off|not enabled)|DevToolsSecurity|not in the _developer group|"
        r"(?:authorization|Instruments)[^\n]*(?:to analyze other processes|is not allowed|not authorized)",
        "developer mode is off, so xctrace may not look into other programs",
        "sudo DevToolsSecurity -enable",
    ),
    known_fault(
        r"Document Missing Template|log archive is corrupt or incomplete and cannot be read|"
        r"(?:trace|document)[^\n]*could not be (?:opened|read)",
        "the document was not finished: xctrace was killed before it had saved, or there was too much of it (2 GB)",
        "record again for a shorter time (--timeout SECONDS), and end it with one Ctrl-C",
    ),
    known_fault(
        r"No space left on device|not enough (?:free |disk )?space|disk (?:is )?full|volume[^\n]*out of space",
        "the disk is full, so xctrace could not save its document",
        "df -h   (a document takes 5 to 100 MB for each second, and its export as much again)",
    ),
    known_fault(
        r"Selected counter profile is not supported on target device|"
        r"Metal GPU Counters[^\n]*failed with status 21",
        UNSUPPORTED_COUNTERS,
        COUNTERS_FIX,
        consequence=True,
    ),
    known_fault(
        r"Instrument with name ['\"]([^'\"\n]+)['\"] cannot be found",
        "this Xcode has no instrument called {0}",
        "xcrun xctrace list instruments",
    ),
    known_fault(
        r"(?:Cannot|Unable to|Could not) find template[^\n]*?(?:matching |)name[d:]?\s*['\"]?([^'\"\n]+)|"
        r"template ['\"]([^'\"\n]+)['\"][^\n]*(?:not found|cannot be found|no such)",
        "this Xcode has no template called {0}",
        "xcrun xctrace list templates",
    ),
    known_fault(
        r"(?:unrecogni[sz]ed|unknown|invalid) (?:option|argument|flag)[:\s]+['\"]?([^'\"\n]+)",
        "this xctrace does not know the option {0}",
        "install a newer Xcode (15 or later)",
    ),
    known_fault(
        r"recording options[^\n]*(?:couldn.t be read|invalid|failed)|The data couldn.t be read because it is missing",
        "xctrace does not take the recording options: each instrument in them needs all of its keys",
        "xcrun xctrace record --template 'CPU Counters' --show-recording-options",
    ),
    known_fault(
        r"(?:file|document|output)[^\n]*already exists",
        "there is a document of that name already, and xctrace replaces none",
        "choose another name",
    ),
    known_fault(
        r"Failed to attach to target",
        "xctrace may not look into this program: macOS protects programs that are signed without get-task-allow",
        "use a Python of your own (python.org, Homebrew, uv, conda), not /usr/bin/python3",
    ),
    known_fault(
        r"(?:cannot|could not|unable to|failed to) (?:launch|spawn|start)[^\n]*(?:process|target|executable|file)|"
        r"File does not exist at path",
        "xctrace could not start the workload: no such program, or it is not executable",
    ),
    known_fault(
        r"Failed to query kext info|Operation not permitted[^\n]*(?:kdebug|ktrace)|"
        r"(?:kdebug|ktrace)[^\n]*(?:busy|in use|already)|Another (?:instance|recording)[^\n]*(?:already|in progress)",
        "another recording is under way, or this session may not trace the kernel (a sandbox, a session over ssh)",
        "close Instruments and other recordings; run it in a terminal of the logged-in user",
    ),
    known_fault(
        r"No configuration information received, will have to guess",
        "xctrace was not told how the instruments are configured and guessed: rows may be missing",
        consequence=True,
    ),
    known_fault(
        r"Reached specified time limit",
        "the time limit came before the workload ended; what was recorded until then is kept",
        "give it more time (--timeout SECONDS) or a smaller input",
        consequence=True,
    ),
    known_fault(
        r"Recording failed with errors|Recording failed",
        "xctrace says that the recording failed; some tables may be empty",
        "record once more; where it stays, restart the Mac (its tracing may be left in use)",
        consequence=True,
    ),
)


def explain(text: str, returncode: int) -> Fault | None:
    """The fault that xctrace or xcrun printed as `text` before it ended with `returncode`; None where none is known."""
    if (fault := first_known(FAULTS, text)) is not None:
        return fault
    if returncode == LICENCE_EXIT:
        return Fault("the licence of Xcode has not been accepted", "sudo xcodebuild -license accept")
    if returncode in (-9, 137):
        return Fault("xctrace was killed (SIGKILL), most often for want of memory", "a shorter recording")
    if returncode in (-5, 133):
        return Fault("xctrace crashed", "a shorter recording, or another version of Xcode")
    if returncode == CUT:
        return Fault(
            "xctrace ended with 54, as it does when its time limit ended the workload",
            "give it more time (--timeout SECONDS) or a smaller input",
            consequence=True,
        )
    return None
