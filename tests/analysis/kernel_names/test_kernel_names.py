"""Kernel names for people: what frameworks and libraries really print, and what nobody should be able to break."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profkit.analysis.kernel_names import labels, same_name, shape, short_name
from profkit.core.types import Kernel, Scope

COPY = (
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const"
    "::{lambda()#7}::operator()() const::{lambda(float)#1}"
)
COPY_NSYS = (
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const"
    "::[lambda() (instance 7)]::operator ()() const::[lambda(float) (instance 1)]"
)
SUM = (
    "at::native::ReduceOp<c10::BFloat16, at::native::func_wrapper_t<c10::BFloat16, at::native::sum_functor"
    "<c10::BFloat16, float, c10::BFloat16>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>,"
    " unsigned int, c10::BFloat16, 4, 8>"
)
FLASH = (
    "flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >,"
    " cute::tuple<cute::C<128>, cute::C<80>, cute::C<256> >, 256, cutlass::bfloat16_t, float, cutlass::arch::Sm90>,"
    " flash::VarlenDynamicPersistentTileScheduler<128, 80, 256, 128, true, true> >"
)
GEMV = (
    "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __half, __half, __half, float, false,"
    " true, true, false, 7, false, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<__half const>, float> >"
    "(cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<__half const>, float>)"
)

# What nsys, ncu and torch's profiler print -> what is said, in 60 characters.
NAMES = {
    # ATen: the functor is what the kernel does; arrays of pointers and offset calculators are plumbing
    "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, at::detail::Array<char*, 3> >"
    "(int, at::native::AddFunctor<float>, at::detail::Array<char*, 3>)": (
        "vectorized_elementwise_kernel<4, AddFunctor<float>>"
    ),
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>,"
    " std::array<char *, (unsigned long)3>>(int, T2, T3)": (
        "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>"
    ),
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16,"
    " c10::BFloat16, at::native::binary_internal::MulFunctor<float>>, std::array<char *, (unsigned long)3>>"
    "(int, T2, T3)": "vectorized_elementwise_kernel<4, MulFunctor<float>>",
    f"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<{COPY}>(at::TensorIteratorBase&,"
    f" {COPY} const&)::{{lambda(int)#1}}>(int, X)": (
        "elementwise_kernel<128, 2, direct_copy_kernel_cuda(float)>"
    ),
    f"void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<{COPY_NSYS}>"
    "(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)": (
        "elementwise_kernel<128, 2, direct_copy_kernel_cuda(float)>"
    ),
    f"void at::native::unrolled_elementwise_kernel<{COPY_NSYS}, std::array<char *, (unsigned long)2>, (int)4,"
    " TrivialOffsetCalculator<(int)1, unsigned int>, at::native::memory::LoadWithCast<(int)1>>(int, T1)": (
        "…<direct_copy_kernel_cuda(float)>"
    ),
    f"void at::native::reduce_kernel<128, 4, {SUM} >({SUM})": (
        "reduce_kernel<128, 4, sum_functor(float, float)>"
    ),
    "void at::native::(anonymous namespace)::indexSelectSmallIndex<float, long, unsigned int, 2, 2, -2>(X)": (
        "indexSelectSmallIndex<float, long, unsigned int, 2, 2, -2>"
    ),
    "void at::native::<unnamed>::softmax_warp_forward<float, float, float, (int)10, (bool)0, (bool)1>(T2 *)": (
        "softmax_warp_forward<float, float, float, 10, false, true>"
    ),
    # CUTLASS: a shell launches what it is a template of
    "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4>"
    "(cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4::Params)": (
        "cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4"
    ),
    f"void cutlass::device_kernel<flash::enable_sm90_or_later<{FLASH}> >(X::Params)": (
        "FlashAttnFwdSm90<CollectiveMainloopFwdSm90<…>, …>"
    ),
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>,"
    " cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<5,"
    " cute::tuple<cute::C<2>>>>>>(T1::Params)": "GemmUniversal<tuple<…>, CollectiveMma<…>>",
    # a plain name says more with the place it stands in
    GEMV: "gemvx::kernel<int, int, __half, __half, __half, float, …>",
    "void cub::CUB_200301_860_NS::DeviceRadixSortOnesweepKernel<cub::CUB_200301_860_NS::DeviceRadixSortPolicy"
    "<unsigned long, unsigned int, unsigned int>::Policy900, (bool)0, unsigned long, unsigned int, unsigned int,"
    " int, int, cub::CUB_200301_860_NS::detail::identity_decomposer_t>(T7 *, T7 *)": (
        "DeviceRadixSortOnesweepKernel<Policy900, false, …>"
    ),
    "void sglang::act_and_mul_kernel<__nv_bfloat16, (sglang::ActivationKind)0, false>(...)": (
        "act_and_mul_kernel<__nv_bfloat16, 0, false>"
    ),
    "void activation::act_and_mul_kernel<__nv_bfloat16, &silu<float>>(T1*)": (
        "act_and_mul_kernel<__nv_bfloat16, &silu<float>>"
    ),
    "void kernel<main::{lambda(int)#1}>(int)": "kernel<main(int)>",
    "void foo<std::less<int>, &A::operator<, 3>(int)": "foo<less<int>, &operator<, 3>",
    "void gsplat::rasterize_fwd_kernel<3u, float>(unsigned int, glm::vec<2, float> const*)": (
        "rasterize_fwd_kernel<3, float>"
    ),
    # numbers are worth least, and one dot stands where they were
    "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<(int)128, (int)64, (int)128, (int)4, (bool)0, (bool)0,"
    " cutlass::half_t, Flash_kernel_traits<(int)128>>, (bool)0, (bool)0, (bool)0>(Flash_fwd_params)": (
        "flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<…>, …>"
    ),
    # NCCL, plain C, numba, Julia
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)": (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    ),
    "dot_kernel(float const*, float const*, float*, int)": "dot_kernel",
    "transposeCoalesced(float *, const float *, int, int)": "transposeCoalesced",
    "(anonymous namespace)::pack((anonymous namespace)::Args)": "pack",
    "cudapy::__main__::add_kernel$241(Array<float, 1, C, mutable, aligned>)": "add_kernel$241",
    # symbols that nobody demangled
    "_Z9addKerneliPf": "addKernel",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEEEEviT0_T1_": (
        "vectorized_elementwise_kernel"
    ),
}
KEPT = (
    "ampere_sgemm_128x64_tn",
    "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT",
    "triton_poi_fused_add_mul_0",
    "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_12",
    "silu_mul",
    "_fwd_kernel",
    "loop_add_fusion_3",
    "my kernel name",
    "triton kernel (fp16)",
    "<script>alert(1)</script>",
    "()",
    "::",
    ">>>>",
)


@pytest.mark.parametrize(("name", "said"), NAMES.items(), ids=lambda text: text[-40:])
def test_a_signature_is_said_in_a_few_words(name: str, said: str) -> None:
    assert short_name(name, 60) == said


@pytest.mark.parametrize("name", KEPT)
def test_a_name_that_is_no_signature_is_kept(name: str) -> None:
    assert short_name(name, 60) == name


@pytest.mark.parametrize("name", [*NAMES, *KEPT], ids=lambda text: text[-40:])
@pytest.mark.parametrize("width", [8, 20, 34, 60, 200])
def test_a_short_name_is_no_wider_than_asked(name: str, width: int) -> None:
    assert 0 < len(short_name(name, width)) <= width


def test_where_there_is_little_room_the_functor_stays_and_the_launcher_goes() -> None:
    names = [name for name in NAMES if "CUDAFunctor_add" in name and "(int)" in name]
    assert short_name(names[0], 34) == "…<CUDAFunctor_add<float>>"


def test_a_long_library_name_loses_its_middle() -> None:
    name = (
        "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel"
    )
    assert short_name(name, 40).startswith("sm80_xmma_gemm")
    assert short_name(name, 40).endswith("_kernel")


HOSTILE = {
    "brackets": "<" * 50_000,
    "templates": "a<" * 20_000,
    "parentheses": "a(" * 20_000,
    "path": "a::" * 60_000,
    "lambdas": "a::[lambda(" * 10_000,
    "operators": "operator<" * 10_000,
    "mangled": "_Z" + "9999" * 5_000,
    "blanks": "a b" * 20_000,
    "cast": "f<(" + "a a" * 9_000 + ">",
    "long": "x" * 2_000_000,
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_name_breaks_nothing(name: str) -> None:
    assert 0 < len(short_name(name, 60)) <= 60  # anything but linear would not come back


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="ab1_<>():,[]{}&* #'lmdoperatorconst\n", max_size=120), st.integers(1, 70))
def test_any_text_gives_a_name(name: str, width: int) -> None:
    assert 0 < len(short_name(name, width)) <= width
    assert same_name(name) or not name


def test_two_tools_mean_the_same_kernel() -> None:
    ncu = f"void at::native::elementwise_kernel<128, 2, void at::native::gpu_kernel_impl_nocast<{COPY_NSYS}>(at::X &)"
    nsys = f"void at::native::elementwise_kernel<(int)128, (int)2, at::native::gpu_kernel_impl_nocast<{COPY}>(at::X&)"
    assert same_name(f"{ncu}::[lambda(int) (instance 1)]>(int, T3)") == same_name(
        f"{nsys}::{{lambda(int)#1}}>(int, Y)"
    )
    assert same_name("void f<const float *, (bool)1>(T1)") == same_name("void f<float const*, true>(float)")
    assert same_name("void f<float>(T1)") != same_name("void f<double>(T1)")


def test_no_two_configurations_have_one_label() -> None:
    pairs = [
        ("silu_mul", "16384x1x1 of 128x1x1"),
        ("silu_mul", "64x2x1 of 128x1x1"),
        ("gemm", "132x1x1 of 384x1x1"),
        ("void at::f<at::A<float, at::deep<at::x<at::y<1>>>>>(int)", "1x1x1 of 32x1x1"),
        ("void at::f<at::A<float, at::deep<at::x<at::y<2>>>>>(int)", "1x1x1 of 32x1x1"),
    ]
    told = labels([*pairs, pairs[0]], 34)
    assert [told[pair] for pair in pairs[:3]] == ["silu_mul (16384 of 128)", "silu_mul (64x2 of 128)", "gemm"]
    assert len(set(told.values())) == len(pairs)
    assert all(len(label) <= 34 for label in told.values())


def test_what_has_no_shape_is_told_apart_without_one() -> None:
    encoder = Kernel("sgemm<float>(device float*)", (), ())
    assert (encoder.id, encoder.scope) == ("", Scope("kernel", "sgemm<float>(device float*)"))
    told = labels(
        [(encoder.name, encoder.id), ("sgemm<float>(texture2d)", ""), ("sgemm<float>(int)", "4x1x1 of 2")]
    )
    assert list(told.values()) == ["sgemm<float> #1", "sgemm<float> #2", "sgemm<float> (4 of 2)"]


def test_a_shape_is_said_without_its_ones() -> None:
    assert shape("132x1x1 of 384x1x1") == "132 of 384"
    assert shape("2x66x1 of 384x1x1") == "2x66 of 384"
    assert shape("1x1x1 of 1x1x1") == "1 of 1"
