//go:build cgo

package endtoend

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// savedBlock is code on the page that saves a model: by toolchain and file.
var savedBlock = regexp.MustCompile("(?ms)^```python ([a-z-]+) (\\S+)\n(.*?)^```$")

// trainers make what the code on the page saves, by file, and name the format that init recognizes.
var trainers = map[string]struct{ format, code string }{
	"model.skops": {"skops", `
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 3.0]], [0, 1, 0, 1])`},
	"model.ubj": {"xgboost", `
import numpy as np, xgboost
model = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(np.arange(20.0).reshape(10, 2), np.arange(10) % 2), 2)`},
	"model.txt": {"lightgbm", `
import lightgbm, numpy as np
data = lightgbm.Dataset(np.random.default_rng(1).random((200, 2)), np.arange(200) % 2)
class model:
    booster_ = lightgbm.train({"objective": "binary", "verbose": -1}, data, 2)`},
	"model.keras": {"keras", `
import keras
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3)])`},
	"converted.keras": {"keras", `
import keras
keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3)]).save("old.h5")`},
	"model.tflite": {"tflite", `
import keras, tensorflow as tf
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3)])`},
	"tensorflow model": {"savedmodel", `
import keras
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3)])`},
	"model.jax": {"jax", `
import jax, jax.export
def f(x):
    return jax.numpy.tanh(x @ jax.numpy.ones((4, 3)))`},
	"model.pt2": {"torch-export", `
import torch
model, x = torch.nn.Linear(4, 3), torch.rand(20, 4)`},
	"model.onnx": {"", `
import torch
model, x = torch.nn.Linear(4, 3), torch.rand(20, 4)`},
	"torch model": {"huggingface", `
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer
with open("vocab.txt", "w") as f:
    f.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"]))
tokenizer = BertTokenizer("vocab.txt")
model = BertForSequenceClassification(BertConfig(vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, max_position_embeddings=16))`},
}

// TestSourceFormatsPage runs the code of the page in the Python of each toolchain that is installed, and init on what it saves.
func TestSourceFormatsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(programtest.Root("docs", "source-formats.md"))
	if err != nil {
		t.Fatal(err)
	}
	program := programtest.Program(t)
	blocks := savedBlock.FindAllStringSubmatch(string(page), -1)
	if len(blocks) != len(trainers) {
		t.Errorf("the page has %d blocks that save a model, and the test makes models for %d", len(blocks), len(trainers))
	}
	for _, block := range blocks {
		toolchain, file, code := block[1], block[2], block[3]
		t.Run(toolchain+" "+file, func(t *testing.T) {
			t.Parallel()
			trainer, ok := trainers[file]
			if !ok {
				trainer, ok = trainers[toolchain+" "+file]
			}
			if !ok {
				t.Fatal("no model is made for this block")
			}
			record, err := toolchaintest.Installed(t, toolchain).Find(toolchain)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			python := exec.CommandContext(t.Context(), record.Interpreter(), "-c", trainer.code+"\n"+code)
			python.Dir, python.Env = dir, append(os.Environ(), "PYTHONPATH="+programtest.Root("ci", "python"), "HOME="+dir, "HF_HUB_OFFLINE=1")
			if out, err := python.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			args := []string{"init", file}
			switch file {
			case "model.pt2":
				args = append(args, "--trust", "pickle")
			case "model.onnx":
				args = append(args, "--cases", "cases.npz")
			}
			initialize := exec.CommandContext(t.Context(), program, args...)
			initialize.Dir, initialize.Env = dir, append(os.Environ(), programtest.Environment(dir, programtest.Cache(t))...)
			if out, err := initialize.CombinedOutput(); err != nil || strings.Contains(string(out), "no expected outputs") {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
			spec, err := os.ReadFile(filepath.Join(dir, "mlpromote.yaml"))
			want := "source: {path: " + file + ", format: " + trainer.format
			if trainer.format == "" {
				want = "source: " + file
			}
			if err != nil || !strings.Contains(string(spec), want) {
				t.Errorf("the spec is %s (error %v), want %q in it", spec, err, want)
			}
		})
	}
}

// installedCell is a toolchain with its size on the page.
var installedCell = regexp.MustCompile("`([a-z-]+)`(?:,| with) ([0-9.]+) ([MG])iB")

// The sizes on the page are those of the rows of toolchains, which are measured.
func TestSourceFormatsSizes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(programtest.Root("docs", "source-formats.md"))
	if err != nil {
		t.Fatal(err)
	}
	cells := installedCell.FindAllStringSubmatch(string(page), -1)
	if len(cells) < 12 {
		t.Fatalf("found %d sizes: does the pattern still fit the page?", len(cells))
	}
	for _, cell := range cells {
		source, err := drivers.Find(cell[1])
		if err != nil {
			t.Error(err)
			continue
		}
		want := strconv.FormatInt(source.Installed, 10) + " M"
		if source.Installed > 1<<10 {
			want = fmt.Sprintf("%.1f G", float64(source.Installed)/(1<<10))
		}
		if got := cell[2] + " " + cell[3]; got != want {
			t.Errorf("%s: the page has %siB, and the row of the toolchain %siB", cell[1], got, want)
		}
	}
}
