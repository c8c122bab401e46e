package script_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// encoderWeights makes the weights of a small encoder, and says in plain loops what it
// computes: token by token, head by head, with nothing of the driver's code.
const encoderWeights = `
import json, math, pathlib, struct
import numpy

def save(path, tensors):
    header, body = {}, b""
    for name, array in sorted(tensors.items()):
        raw = numpy.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": {"float32": "F32", "int64": "I64"}[str(array.dtype)], "shape": list(array.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)

r = numpy.random.RandomState(7)
WORDS, TOKENS, WIDTH, HEADS, INNER, CLASSES = 11, 5, 8, 2, 12, 3
w = {"tokens.weight": r.normal(size=(WORDS, WIDTH)), "positions.weight": r.normal(size=(TOKENS + 2, WIDTH)), "head.weight": r.normal(size=(CLASSES, WIDTH)), "head.bias": r.normal(size=CLASSES)}
for b in ("block0", "block1"):
    for p, (o, i) in {"query": (WIDTH, WIDTH), "key": (WIDTH, WIDTH), "value": (WIDTH, WIDTH), "out": (WIDTH, WIDTH), "up": (INNER, WIDTH), "down": (WIDTH, INNER)}.items():
        w[f"{b}.{p}.weight"], w[f"{b}.{p}.bias"] = r.normal(size=(o, i)) / i**0.5, r.normal(size=o) / 4
    for p in ("norm1", "norm2"):
        w[f"{b}.{p}.weight"], w[f"{b}.{p}.bias"] = 1 + r.normal(size=WIDTH) / 4, r.normal(size=WIDTH) / 4
w = {n: a.astype("float32") for n, a in w.items()}

def affine(n, v):
    return [sum(float(a) * b for a, b in zip(row, v)) + float(w[n + ".bias"][o]) for o, row in enumerate(w[n + ".weight"])]

def norm(n, v):
    m = sum(v) / len(v)
    s = math.sqrt(sum((a - m) ** 2 for a in v) / len(v) + 1e-5)
    return [(a - m) / s * float(g) + float(b) for a, g, b in zip(v, w[n + ".weight"], w[n + ".bias"])]

def block(b, x):
    q, k, u = ([affine(f"{b}.{p}", v) for v in x] for p in ("query", "key", "value"))
    size, out = WIDTH // HEADS, []
    for t in range(len(x)):
        joined = []
        for h in range(HEADS):
            at = slice(h * size, h * size + size)
            e = [math.exp(sum(a * c for a, c in zip(q[t][at], k[s][at])) / math.sqrt(size)) for s in range(len(x))]
            joined += [sum(e[s] / sum(e) * u[s][at][i] for s in range(len(x))) for i in range(size)]
        v = norm(b + ".norm1", [a + c for a, c in zip(x[t], affine(b + ".out", joined))])
        up = [a / 2 * (1 + math.erf(a / math.sqrt(2))) for a in affine(b + ".up", v)]
        out.append(norm(b + ".norm2", [a + c for a, c in zip(v, affine(b + ".down", up))]))
    return out

cases = r.randint(0, WORDS, size=(5, TOKENS)).astype("int64")
want = []
for case in cases:
    x = [[float(a) + float(p) for a, p in zip(w["tokens.weight"][t], w["positions.weight"][i])] for i, t in enumerate(case)]
    x = block("block1", block("block0", x))
    want.append(affine("head", [sum(v[i] for v in x) / len(x) for i in range(WIDTH)]))
save("encoder.safetensors", w)
save("cases.safetensors", {"input": cases})
save("want.safetensors", {"output": numpy.array(want, "float32")})
`

// The driver's own run of an encoder computes what the loops above do. That the ONNX which
// it makes computes the same, the script import_encoder verifies.
func TestEncoder(t *testing.T) {
	t.Parallel()
	installer := toolchaintest.Installer(t, "safetensors")
	record, err := installer.Find("safetensors")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "weights.py"), []byte(encoderWeights), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), record.Interpreter(), "weights.py")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	driver := script.New(script.Installed(installer, "safetensors"), driverproc.Budget{})
	options := map[string]any{
		"kind": "encoder", "input": []string{"5"}, "heads": 2, "norm": "after",
		"layers": []string{"tokens", "positions", "block0", "block1", "mean", "head"},
	}
	source := toolchaintest.Input(t, toolchain.RoleModel, "source.safetensors", filepath.Join(dir, "encoder.safetensors"))
	cases := toolchaintest.Input(t, toolchain.RoleCases, "cases.safetensors", filepath.Join(dir, "cases.safetensors"))
	job := toolchain.Job{
		Verb: toolchain.VerbRun, Inputs: []toolchain.Input{source, cases}, Options: options,
		Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "m", Path: source.Name}}},
	}
	outcome, err := driver.Do(t.Context(), job, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got, want := floats(t, outcome.Files[0].Path), floats(t, filepath.Join(dir, "want.safetensors"))
	if len(got) != len(want) || len(want) != 15 {
		t.Fatalf("%d numbers, want %d of 15", len(got), len(want))
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-5*(1+math.Abs(want[i])) {
			t.Errorf("number %d is %v, want %v", i, got[i], want[i])
		}
	}

	// what stands in the way has a name
	options["layers"] = []string{"tokens", "positions", "block0", "block2", "mean", "head"}
	_, err = driver.Do(t.Context(), toolchain.Job{Verb: toolchain.VerbImport, Inputs: []toolchain.Input{source}, Options: options}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "weight block2.weight is none") {
		t.Errorf("error %v, want one about block2", err)
	}
}
