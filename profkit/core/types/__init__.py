"""The frozen types that packages hand each other.

Imports nothing of profkit. Every type here is plain data: no files, no processes, no clocks.

A workload's process uses a few of them, and to make all costs it 50 ms: a module is loaded with the first of its names.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profkit.core.types.bisect import BisectDocument as BisectDocument
    from profkit.core.types.bisect import BisectOptions as BisectOptions
    from profkit.core.types.bisect import BisectPart as BisectPart
    from profkit.core.types.bisect import BisectSearch as BisectSearch
    from profkit.core.types.bisect import BisectState as BisectState
    from profkit.core.types.bisect import BisectStep as BisectStep
    from profkit.core.types.bisect import SkippedCommit as SkippedCommit
    from profkit.core.types.comparison import BlamedLine as BlamedLine
    from profkit.core.types.comparison import Cause as Cause
    from profkit.core.types.comparison import Change as Change
    from profkit.core.types.comparison import ChangeWord as ChangeWord
    from profkit.core.types.comparison import ComparedEnding as ComparedEnding
    from profkit.core.types.comparison import ComparedSuite as ComparedSuite
    from profkit.core.types.comparison import ComparedWorkload as ComparedWorkload
    from profkit.core.types.comparison import Comparison as Comparison
    from profkit.core.types.comparison import ComparisonOutcome as ComparisonOutcome
    from profkit.core.types.comparison import Course as Course
    from profkit.core.types.comparison import Difference as Difference
    from profkit.core.types.comparison import Fact as Fact
    from profkit.core.types.comparison import Feature as Feature
    from profkit.core.types.comparison import Fingerprint as Fingerprint
    from profkit.core.types.comparison import FunctionChange as FunctionChange
    from profkit.core.types.comparison import KernelChange as KernelChange
    from profkit.core.types.comparison import KernelChangeWord as KernelChangeWord
    from profkit.core.types.comparison import Pairing as Pairing
    from profkit.core.types.comparison import Sample as Sample
    from profkit.core.types.comparison import Side as Side
    from profkit.core.types.comparison import SuiteOutcome as SuiteOutcome
    from profkit.core.types.comparison import Tier as Tier
    from profkit.core.types.evaluation import STATUSES as STATUSES
    from profkit.core.types.evaluation import UNDECIDED as UNDECIDED
    from profkit.core.types.evaluation import EvaluationDocument as EvaluationDocument
    from profkit.core.types.evaluation import EvaluationTest as EvaluationTest
    from profkit.core.types.evaluation import Fault as Fault
    from profkit.core.types.evaluation import Speedup as Speedup
    from profkit.core.types.evaluation import SpeedWord as SpeedWord
    from profkit.core.types.evaluation import TestResult as TestResult
    from profkit.core.types.evaluation import TestStatus as TestStatus
    from profkit.core.types.exchange import Directive as Directive
    from profkit.core.types.exchange import SampleSet as SampleSet
    from profkit.core.types.exchange import Switch as Switch
    from profkit.core.types.exchange import TritonWork as TritonWork
    from profkit.core.types.exchange import Tuning as Tuning
    from profkit.core.types.generation import Attempt as Attempt
    from profkit.core.types.generation import AttemptStatus as AttemptStatus
    from profkit.core.types.generation import GenerationDocument as GenerationDocument
    from profkit.core.types.generation import GenerationLimits as GenerationLimits
    from profkit.core.types.generation import ModelCall as ModelCall
    from profkit.core.types.generation import OperationAttempts as OperationAttempts
    from profkit.core.types.generation import StopReason as StopReason
    from profkit.core.types.generation import TimedCall as TimedCall
    from profkit.core.types.gpu import ApiCall as ApiCall
    from profkit.core.types.gpu import Communication as Communication
    from profkit.core.types.gpu import DeviceStreams as DeviceStreams
    from profkit.core.types.gpu import Gpu as Gpu
    from profkit.core.types.gpu import GpuRange as GpuRange
    from profkit.core.types.gpu import GpuToolLines as GpuToolLines
    from profkit.core.types.gpu import GpuTrace as GpuTrace
    from profkit.core.types.gpu import HostMemory as HostMemory
    from profkit.core.types.gpu import HostPauses as HostPauses
    from profkit.core.types.gpu import Kernel as Kernel
    from profkit.core.types.gpu import KernelBottleneck as KernelBottleneck
    from profkit.core.types.gpu import KernelInstruction as KernelInstruction
    from profkit.core.types.gpu import KernelTime as KernelTime
    from profkit.core.types.gpu import MemoryKind as MemoryKind
    from profkit.core.types.gpu import StreamTime as StreamTime
    from profkit.core.types.gpu import ToolRule as ToolRule
    from profkit.core.types.gpu import Transfer as Transfer
    from profkit.core.types.history import AcceptedChange as AcceptedChange
    from profkit.core.types.history import ChangePoint as ChangePoint
    from profkit.core.types.history import Entry as Entry
    from profkit.core.types.history import HistorySummary as HistorySummary
    from profkit.core.types.history import Point as Point
    from profkit.core.types.history import Segment as Segment
    from profkit.core.types.history import Series as Series
    from profkit.core.types.history import SeriesKey as SeriesKey
    from profkit.core.types.history import SeriesSummary as SeriesSummary
    from profkit.core.types.history import Trend as Trend
    from profkit.core.types.history import Value as Value
    from profkit.core.types.insights import Gain as Gain
    from profkit.core.types.insights import Insight as Insight
    from profkit.core.types.insights import Place as Place
    from profkit.core.types.insights import TimeSplit as TimeSplit
    from profkit.core.types.machine import Cache as Cache
    from profkit.core.types.machine import Check as Check
    from profkit.core.types.machine import DeviceMoment as DeviceMoment
    from profkit.core.types.machine import Disturbance as Disturbance
    from profkit.core.types.machine import Machine as Machine
    from profkit.core.types.machine import Moment as Moment
    from profkit.core.types.machine import Peaks as Peaks
    from profkit.core.types.machine import RunSpread as RunSpread
    from profkit.core.types.metal import MetalAbsent as MetalAbsent
    from profkit.core.types.metal import MetalCounter as MetalCounter
    from profkit.core.types.metal import MetalOverTime as MetalOverTime
    from profkit.core.types.metal import MetalProcess as MetalProcess
    from profkit.core.types.metal import MetalState as MetalState
    from profkit.core.types.metal import MetalTrace as MetalTrace
    from profkit.core.types.metal import MetalWork as MetalWork
    from profkit.core.types.metal import Spread as Spread
    from profkit.core.types.night import DecisionStep as DecisionStep
    from profkit.core.types.night import MetricOutcome as MetricOutcome
    from profkit.core.types.night import Night as Night
    from profkit.core.types.night import NightPairs as NightPairs
    from profkit.core.types.night import Outcome as Outcome
    from profkit.core.types.night import PairsCommand as PairsCommand
    from profkit.core.types.night import Uncounted as Uncounted
    from profkit.core.types.night import WorkloadOutcome as WorkloadOutcome
    from profkit.core.types.plan import KernelPlan as KernelPlan
    from profkit.core.types.plan import PassPlan as PassPlan
    from profkit.core.types.plan import PassResult as PassResult
    from profkit.core.types.plan import Plan as Plan
    from profkit.core.types.plan import Step as Step
    from profkit.core.types.readings import QUALITY_ORDER as QUALITY_ORDER
    from profkit.core.types.readings import RUN as RUN
    from profkit.core.types.readings import BackendName as BackendName
    from profkit.core.types.readings import Bound as Bound
    from profkit.core.types.readings import CheckState as CheckState
    from profkit.core.types.readings import CodeLine as CodeLine
    from profkit.core.types.readings import Counter as Counter
    from profkit.core.types.readings import CounterState as CounterState
    from profkit.core.types.readings import Depth as Depth
    from profkit.core.types.readings import Direction as Direction
    from profkit.core.types.readings import Frame as Frame
    from profkit.core.types.readings import Hotspot as Hotspot
    from profkit.core.types.readings import Json as Json
    from profkit.core.types.readings import Operator as Operator
    from profkit.core.types.readings import PassName as PassName
    from profkit.core.types.readings import PassState as PassState
    from profkit.core.types.readings import Profile as Profile
    from profkit.core.types.readings import ProfileKind as ProfileKind
    from profkit.core.types.readings import Quality as Quality
    from profkit.core.types.readings import Reading as Reading
    from profkit.core.types.readings import ReasonCode as ReasonCode
    from profkit.core.types.readings import RunState as RunState
    from profkit.core.types.readings import Scope as Scope
    from profkit.core.types.readings import ScopeKind as ScopeKind
    from profkit.core.types.readings import Source as Source
    from profkit.core.types.readings import Stacks as Stacks
    from profkit.core.types.readings import Summary as Summary
    from profkit.core.types.readings import Threshold as Threshold
    from profkit.core.types.readings import Verdict as Verdict
    from profkit.core.types.readings import VerdictWord as VerdictWord
    from profkit.core.types.run import AllocationLine as AllocationLine
    from profkit.core.types.run import Allocations as Allocations
    from profkit.core.types.run import MemoryGrowth as MemoryGrowth
    from profkit.core.types.run import Report as Report
    from profkit.core.types.run import Revision as Revision
    from profkit.core.types.run import RunDocument as RunDocument
    from profkit.core.types.run import RunProcess as RunProcess
    from profkit.core.types.run import SteadyLine as SteadyLine
    from profkit.core.types.run import Timing as Timing
    from profkit.core.types.run import Workload as Workload
    from profkit.core.types.sweep import CaseResult as CaseResult
    from profkit.core.types.sweep import CaseState as CaseState
    from profkit.core.types.sweep import GridPoint as GridPoint
    from profkit.core.types.sweep import MeasuredCeilings as MeasuredCeilings
    from profkit.core.types.sweep import SweepDirection as SweepDirection
    from profkit.core.types.sweep import SweepDocument as SweepDocument

_NAMES = {
    "bisect": "BisectDocument BisectOptions BisectPart BisectSearch BisectState BisectStep SkippedCommit",
    "comparison": (
        "BlamedLine Cause Change ChangeWord ComparedEnding ComparedSuite ComparedWorkload Comparison "
        "ComparisonOutcome Course Difference Fact Feature Fingerprint FunctionChange "
        "KernelChange KernelChangeWord Pairing Sample Side SuiteOutcome Tier"
    ),
    "evaluation": "STATUSES UNDECIDED EvaluationDocument EvaluationTest Fault Speedup SpeedWord TestResult TestStatus",
    "exchange": "Directive SampleSet Switch TritonWork Tuning",
    "generation": (
        "Attempt AttemptStatus GenerationDocument GenerationLimits ModelCall OperationAttempts StopReason "
        "TimedCall"
    ),
    "gpu": (
        "ApiCall Communication DeviceStreams Gpu GpuRange GpuToolLines GpuTrace HostMemory HostPauses "
        "Kernel KernelBottleneck KernelInstruction KernelTime MemoryKind StreamTime ToolRule Transfer"
    ),
    "history": (
        "AcceptedChange ChangePoint Entry HistorySummary Point Segment Series SeriesKey SeriesSummary Trend "
        "Value"
    ),
    "insights": "Gain Insight Place TimeSplit",
    "machine": "Cache Check DeviceMoment Disturbance Machine Moment Peaks RunSpread",
    "metal": ("MetalAbsent MetalCounter MetalOverTime MetalProcess MetalState MetalTrace MetalWork Spread"),
    "night": ("DecisionStep MetricOutcome Night NightPairs Outcome PairsCommand Uncounted WorkloadOutcome"),
    "plan": "KernelPlan PassPlan PassResult Plan Step",
    "readings": (
        "QUALITY_ORDER RUN BackendName Bound CheckState CodeLine Counter CounterState Depth Direction Frame Hotspot "
        "Json Operator PassName PassState Profile ProfileKind Quality Reading ReasonCode RunState Scope ScopeKind "
        "Source Stacks Summary Threshold Verdict VerdictWord"
    ),
    "run": (
        "AllocationLine Allocations MemoryGrowth Report Revision RunDocument RunProcess SteadyLine Timing "
        "Workload"
    ),
    "sweep": "CaseResult CaseState GridPoint MeasuredCeilings SweepDirection SweepDocument",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Not importlib's: a workload has no need of it.
    value = getattr(__import__(f"{__name__}.{_MODULES[name]}", fromlist=(name,)), name)
    globals()[name] = value  # the next look-up is a plain one
    return value
