"""Run with the wheel installed: python -m unittest discover python/tests."""

import pathlib
import unittest

import aoti_inspect

ARTIFACTS = pathlib.Path(__file__).resolve().parents[2] / "testdata" / "artifacts"
MODEL = ARTIFACTS / "2.15.0-cpu-mlp_dynamic.pt2"


class Tensor:
    """Looks like torch's, without torch."""

    def __init__(self, dtype, shape, stride=None, device="cpu"):
        self.dtype, self.shape, self.device = dtype, shape, device
        self._stride = stride

    def stride(self):
        if self._stride is not None:
            return self._stride
        strides, step = [], 1
        for size in reversed(self.shape):
            strides.insert(0, step)
            step *= size
        return tuple(strides)


class NdArray:
    """Looks like numpy's: strides in bytes, no device."""

    dtype, shape, strides, itemsize = "float32", (8, 10), (40, 4), 4


class Spec(unittest.TestCase):
    def test_tensors(self):
        self.assertEqual(aoti_inspect.spec(Tensor("torch.float32", (2, 10), device="cuda:0")), "float32:2x10/10x1@cuda:0")
        self.assertEqual(aoti_inspect.spec(Tensor("torch.int64", ())), "int64:scalar@cpu")
        self.assertEqual(aoti_inspect.spec(NdArray()), "float32:8x10/10x1")
        self.assertEqual(aoti_inspect.spec("f32[2, 10]"), "f32[2, 10]")

    def test_numbers_are_no_inputs(self):
        with self.assertRaises(TypeError):
            aoti_inspect.spec(3)


class Verify(unittest.TestCase):
    def test_holds(self):
        verdict = aoti_inspect.verify(MODEL, inputs=[Tensor("torch.float32", (8, 10))], device="cpu")
        self.assertTrue(verdict, verdict)
        self.assertTrue(any(f["outcome"] == "pass" for f in verdict.findings))

    def test_by_name(self):
        self.assertTrue(aoti_inspect.verify(MODEL, inputs={"0": NdArray()}))

    def test_fails_with_a_sentence(self):
        verdict = aoti_inspect.verify(MODEL, inputs=[Tensor("torch.float64", (8, 11))])
        self.assertFalse(verdict)
        self.assertEqual(verdict.exit_code, 1)
        self.assertIn("float64", str(verdict))

    def test_count(self):
        self.assertEqual(aoti_inspect.verify(MODEL, inputs=[]).exit_code, 1)

    def test_wrong_use(self):
        with self.assertRaisesRegex(ValueError, "float31"):
            aoti_inspect.verify(MODEL, inputs=["float31:2x10"])

    def test_missing_file(self):
        self.assertEqual(aoti_inspect.verify("no/such/file.pt2").exit_code, 3)


if __name__ == "__main__":
    unittest.main()
