"""The words of the house as frozen types: what rooms hand each other, and nothing else.

Imports nothing of profkit. Every type here is plain data: no files, no processes, no clocks.
"""

from profkit.model.answers import Summary as Summary
from profkit.model.answers import Table as Table
from profkit.model.answers import Verdict as Verdict
from profkit.model.gpu import ApiCall as ApiCall
from profkit.model.gpu import Gpu as Gpu
from profkit.model.gpu import GpuRange as GpuRange
from profkit.model.gpu import GpuTrace as GpuTrace
from profkit.model.gpu import Kernel as Kernel
from profkit.model.gpu import KernelClass as KernelClass
from profkit.model.gpu import KernelTime as KernelTime
from profkit.model.gpu import Transfer as Transfer
from profkit.model.machine import Cache as Cache
from profkit.model.machine import Check as Check
from profkit.model.machine import Machine as Machine
from profkit.model.machine import Peaks as Peaks
from profkit.model.plan import Directive as Directive
from profkit.model.plan import KernelPlan as KernelPlan
from profkit.model.plan import PassPlan as PassPlan
from profkit.model.plan import PassResult as PassResult
from profkit.model.plan import Plan as Plan
from profkit.model.plan import Step as Step
from profkit.model.plan import Switch as Switch
from profkit.model.report import Report as Report
from profkit.model.run import RunDocument as RunDocument
from profkit.model.run import Workload as Workload
from profkit.model.time import SampleSet as SampleSet
from profkit.model.time import Timing as Timing
from profkit.model.triton import TritonWork as TritonWork
from profkit.model.triton import Tuning as Tuning
from profkit.model.values import RUN as RUN
from profkit.model.values import Counter as Counter
from profkit.model.values import Frame as Frame
from profkit.model.values import Hotspot as Hotspot
from profkit.model.values import Profile as Profile
from profkit.model.values import Reading as Reading
from profkit.model.values import Scope as Scope
from profkit.model.values import Source as Source
from profkit.model.values import Stacks as Stacks
from profkit.model.words import QUALITY_ORDER as QUALITY_ORDER
from profkit.model.words import Backend as Backend
from profkit.model.words import Bound as Bound
from profkit.model.words import CheckState as CheckState
from profkit.model.words import CounterState as CounterState
from profkit.model.words import Depth as Depth
from profkit.model.words import Json as Json
from profkit.model.words import PassName as PassName
from profkit.model.words import PassState as PassState
from profkit.model.words import Quality as Quality
from profkit.model.words import RunState as RunState
from profkit.model.words import ScopeKind as ScopeKind
from profkit.model.words import VerdictWord as VerdictWord
