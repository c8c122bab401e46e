package caserun_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// scaled is an engine that multiplies a number. Its results reuse one memory, as those of libraries do.
type scaled struct {
	id     string
	factor uint64
	room   [8]byte
	calls  *[]string // of all engines
	refuse map[string]error
}

func (e *scaled) Feed(s *caserun.Shard, c int64) error {
	*e.calls = append(*e.calls, fmt.Sprintf("%s:%s%d", e.id, s.Name, c))
	if err := e.refuse["feed"]; err != nil {
		return err
	}
	return s.Read("x", c, e.room[:])
}

func (e *scaled) Run(context.Context) (time.Duration, error) {
	x := binary.LittleEndian.Uint64(e.room[:])
	binary.LittleEndian.PutUint64(e.room[:], x*e.factor)
	return time.Duration(x + 1), e.refuse["run"]
}

func (e *scaled) Outputs() ([]tensor.Tensor, error) {
	*e.calls = append(*e.calls, "keep")
	y := tensor.Tensor{DType: tensor.Int64, Shape: []int64{1}, Data: e.room[:]}
	return []tensor.Tensor{y, y}, e.refuse["outputs"]
}

func (e *scaled) Free() { clear(e.room[:]) }

// world is a run of two engines on three cases in two shards.
type world struct {
	request driverproc.Request
	shards  []*caserun.Shard
	entries []caserun.Entry
	calls   []string
	a, b    *scaled
}

func newWorld(t *testing.T, o toolchain.RunOptions) *world {
	t.Helper()
	w := &world{}
	w.a, w.b = &scaled{id: "a", factor: 2, calls: &w.calls}, &scaled{id: "b", factor: 3, calls: &w.calls}
	w.entries = []caserun.Entry{{Engine: w.a, ID: "a", Outputs: []string{"y", "z"}}, {Engine: w.b, ID: "b", Outputs: []string{"y", "z"}}}
	w.shards = open(t, []caserun.Slot{{Name: "x", DType: tensor.Int64}}, write(t, "p", map[string]tensor.Tensor{"x": ints([]int64{2}, 4, 5)}),
		write(t, "q", map[string]tensor.Tensor{"x": ints([]int64{1}, 6)}))
	dir := t.TempDir()
	w.request = driverproc.Request{ProgressPath: filepath.Join(dir, "progress"),
		Run: &driverproc.RunRequest{RunOptions: o, OutputsDir: filepath.Join(dir, "outputs")}}
	return w
}

// Engines warm up, take turns case by case, every other round in reverse, and leave the outputs of the first round.
func TestRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, toolchain.RunOptions{Rounds: 3, Warmup: 4})
	results, err := caserun.Run(t.Context(), w.request, w.shards, w.entries)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`a:p0 b:p0 a:p1 b:p1 a:q0 b:q0 a:p0 b:p0
		a:p0 keep b:p0 keep a:p1 keep b:p1 keep a:q0 keep b:q0 keep
		b:p0 a:p0 b:p1 a:p1 b:q0 a:q0
		a:p0 b:p0 a:p1 b:p1 a:q0 b:q0`)
	if !slices.Equal(w.calls, want) {
		t.Errorf("calls\n%q, want\n%q", w.calls, want)
	}
	for n, e := range w.entries {
		if timings := []int64{5, 6, 7, 5, 6, 7, 5, 6, 7}; results[n].ID != e.ID || !slices.Equal(results[n].TimingsNS, timings) {
			t.Errorf("engine %s: %+v, want the timings %v", e.ID, results[n], timings)
		}
		factor := []int64{2, 3}[n]
		for name, y := range map[string]tensor.Tensor{"p": ints([]int64{2}, 4*factor, 5*factor), "q": ints([]int64{1}, 6*factor)} {
			got, err := tensorfile.ReadFile(filepath.Join(w.request.Run.OutputsDir, e.ID, name), tensorfile.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			for _, output := range []string{"y", "z"} {
				if g := got[output]; !slices.Equal(g.Shape, y.Shape) || !slices.Equal(g.Data, y.Data) {
					t.Errorf("%s of engine %s, shard %s: %+v, want %+v", output, e.ID, name, g, y)
				}
			}
		}
	}
	text, err := os.ReadFile(w.request.ProgressPath)
	if _, of, _ := strings.Cut(strings.TrimSpace(string(text)), " "); err != nil || of != "26" {
		t.Errorf("progress %q (%v), want some of 26 runs", text, err)
	}
}

// An error of a run has its case, with the other facts that the engine reported. Errors of feeds and outputs stay as they are.
func TestRunFails(t *testing.T) {
	t.Parallel()
	coded := driverproc.Errorf(driverproc.UnsupportedOp, "no such thing")
	coded.Op = "Mul"
	for name, tc := range map[string]struct {
		at   string
		err  error
		want string
		code driverproc.ErrorCode
	}{
		"coded run":  {"run", coded, "engine b: case 0 (row 0 of p): Mul: no such thing", driverproc.UnsupportedOp},
		"other run":  {"run", errors.New("broken"), "engine b: case 0 (row 0 of p): broken", driverproc.ToolFailed},
		"of feed":    {"feed", driverproc.Errorf(driverproc.BadInput, "unreadable"), "unreadable", driverproc.BadInput},
		"of outputs": {"outputs", driverproc.Errorf(driverproc.ToolFailed, "unshaped"), "unshaped", driverproc.ToolFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, toolchain.RunOptions{})
			w.b.refuse = map[string]error{tc.at: tc.err}
			_, err := caserun.Run(t.Context(), w.request, w.shards, w.entries)
			var failed *driverproc.Error
			if !errors.As(err, &failed) || failed.Code != tc.code || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
	err := caserun.InCase(errors.New("broken"), "b", &caserun.Shard{Name: "q", First: 2}, 1)
	if want := "engine b: case 3 (row 1 of q): broken"; err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestRunEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, toolchain.RunOptions{Rounds: 1_000_000})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := caserun.Run(ctx, w.request, w.shards, w.entries); !errors.Is(err, context.Canceled) || len(w.calls) != 0 {
		t.Errorf("error %v after %d calls, want a cancelled run without calls", err, len(w.calls))
	}
	w = newWorld(t, toolchain.RunOptions{Rounds: 1_333_334})
	_, err := caserun.Run(t.Context(), w.request, w.shards, w.entries)
	if want := "1333334 rounds of 3 cases: want at most 4000000 runs of each engine"; err == nil || err.Error() != want || len(w.calls) != 0 {
		t.Errorf("error %v after %d calls, want %s", err, len(w.calls), want)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	o := toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "a"}, {ID: "b"}}}
	for order, want := range map[toolchain.Order]string{"": "[1 1]", toolchain.OrderSequential: "[1 1]", toolchain.OrderInterleaved: "[2]"} {
		o.Order = order
		var sizes []int
		for _, group := range caserun.Groups(o) {
			sizes = append(sizes, len(group))
		}
		if got := fmt.Sprint(sizes); got != want {
			t.Errorf("order %q: groups of %s, want %s", order, got, want)
		}
	}
}

func TestWriterRefusesOtherShapes(t *testing.T) {
	t.Parallel()
	s := &caserun.Shard{Name: "deep/p", Count: 2}
	w := caserun.NewWriter(t.TempDir(), "m", []string{"y"})
	if err := w.Append(s, []tensor.Tensor{count(0, 1, 2)}); err != nil {
		t.Fatal(err)
	}
	err := w.Append(s, []tensor.Tensor{count(0, 1, 3)})
	var failed *driverproc.Error
	if want := "engine m: the outputs of the cases of deep/p have different shapes: "; !errors.As(err, &failed) ||
		failed.Code != driverproc.BadInput || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}
