package percase_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/percase"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

func column[T tensor.Scalar](t testing.TB, values ...T) tensor.Tensor {
	t.Helper()
	c, err := tensor.New(values, int64(len(values)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// small are the figures of two cases.
func small(t testing.TB) percase.Figures {
	t.Helper()
	return percase.Figures{
		Accuracy: accuracy.Columns{"engine.error": column(t, 0.5, 2), "reference.error": column(t, 0.25, 1)},
		Current:  accuracy.Columns{"engine.error": column(t, 0.5, 2), "reference.error": column(t, 1.0, 1)},
		Slices:   []int64{-1, 7},
		Outputs: map[string][]tensor.CaseFigures{
			"logits":     {{Failed: 3, MaxAbs: 0.5, Cosine: 1, Error: 0.1, Equal: 0.75, Top1: 1, Elements: 4, Mean: -2, Deviation: 0.5, RMS: 2.25, RMSE: 0.3}, {MaxAbs: math.Inf(1), Cosine: -1, Error: 2}},
			"hidden.out": {{Cosine: 1}, {Cosine: 1}},
		},
	}
}

func written(t testing.TB, f percase.Figures) []byte {
	t.Helper()
	data, leftOut, err := f.Marshal()
	if err != nil || leftOut != "" {
		t.Fatal(err, leftOut)
	}
	return data
}

// What is written is read again, and equal figures give equal bytes.
func TestReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	want := small(t)
	data := written(t, want)
	got, err := percase.Read(data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, error %v; want %+v", got, err, want)
	}
	if again := written(t, got); !bytes.Equal(again, data) {
		t.Errorf("%d bytes are written again as %d others", len(data), len(again))
	}
}

// A file has at most so many bytes: then the figures of outputs are left out, or all, which is said.
func TestLeavesOutWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	const some = 60_000
	data, leftOut, err := percase.Figures{Outputs: map[string][]tensor.CaseFigures{"y": make([]tensor.CaseFigures, some)}}.Marshal()
	if err != nil || leftOut != "" || len(data) > evidence.MaxCaseFigures {
		t.Errorf("%d bytes without %q, error %v; want those that every version writes", len(data), leftOut, err)
	}
	if got, err := percase.Read(data); err != nil || len(got.Outputs["y"]) != some || !math.IsNaN(got.Outputs["y"][7].RMSE) {
		t.Errorf("error %v; want %d cases without the optional figures", err, some)
	}
	const cases = 100_000
	each := make([]float64, cases)
	many := percase.Figures{Accuracy: accuracy.Columns{"engine.error": column(t, each...), "reference.error": column(t, each...)},
		Outputs: map[string][]tensor.CaseFigures{"y": make([]tensor.CaseFigures, cases)}}
	data, leftOut, err = many.Marshal()
	if err != nil || !strings.Contains(leftOut, "those of outputs") || len(data) < 16*cases || len(data) > evidence.MaxCaseFigures {
		t.Errorf("%d bytes without %q, error %v; want those of accuracy alone", len(data), leftOut, err)
	}
	if got, err := percase.Read(data); err != nil || len(got.Outputs) != 0 || len(got.Accuracy) != 2 {
		t.Errorf("read %d columns and %d outputs, error %v; want those of accuracy", len(got.Accuracy), len(got.Outputs), err)
	}
	for i := range 4 {
		many.Accuracy["more"+strings.Repeat("e", i)] = column(t, each...)
	}
	if data, leftOut, err := many.Marshal(); err != nil || data != nil || !strings.HasPrefix(leftOut, "all: ") {
		t.Errorf("%d bytes without %q, error %v; want nothing", len(data), leftOut, err)
	}
}

// A file without the optional figures is read; it says that they are not known.
func TestReadsFilesWithoutOptionalFigures(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	one := column(t, 1.0)
	if err := tensorfile.Write(&out, map[string]tensor.Tensor{"output.y.failed": column[int64](t, 2), "output.y.maxAbs": one, "output.y.cosine": one,
		"output.y.caseError": one, "output.y.equalMisses": one, "output.y.top1Misses": one}, map[string]string{"mlpromote.figures": "1"}); err != nil {
		t.Fatal(err)
	}
	got, err := percase.Read(out.Bytes())
	if err != nil || len(got.Outputs["y"]) != 1 {
		t.Fatalf("read %+v, error %v; want one case", got, err)
	}
	if of := got.Outputs["y"][0]; of.Failed != 2 || of.Error != 1 || of.Elements != 0 || !math.IsNaN(of.RMSE) || !math.IsNaN(of.Mean) {
		t.Errorf("%+v, want two that failed, and no number for what the file does not have", of)
	}
}

// What is no file of figures is refused, and says why.
func TestRefuses(t *testing.T) {
	t.Parallel()
	file := func(metadata map[string]string, tensors map[string]tensor.Tensor) []byte {
		var out bytes.Buffer
		if err := tensorfile.Write(&out, tensors, metadata); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	v1 := map[string]string{"mlpromote.figures": "1"}
	output := func(change func(c map[string]tensor.Tensor)) []byte {
		one := column(t, 1.0)
		c := map[string]tensor.Tensor{"output.y.failed": column[int64](t, 0), "output.y.maxAbs": one, "output.y.cosine": one,
			"output.y.caseError": one, "output.y.equalMisses": one, "output.y.top1Misses": one}
		change(c)
		return file(v1, c)
	}
	matrix := column(t, 1.0)
	matrix.Shape = []int64{1, 1}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":                           {nil, "too few for a header"},
		"too much":                          {make([]byte, evidence.MaxCaseFigures+1), "want at most"},
		"no version":                        {file(nil, nil), `mlpromote.figures "": want "1"`},
		"another version":                   {file(map[string]string{"mlpromote.figures": "2"}, nil), `"2": want "1"`},
		"a matrix":                          {file(v1, map[string]tensor.Tensor{"accuracy.error": matrix}), "more than 1 entries"},
		"slices of another type":            {file(v1, map[string]tensor.Tensor{"slice": column(t, 1.0)}), "slice: "},
		"a figure less":                     {output(func(c map[string]tensor.Tensor) { delete(c, "output.y.cosine") }), "there is no cosine"},
		"a case more":                       {output(func(c map[string]tensor.Tensor) { c["output.y.maxAbs"] = column(t, 1.0, 2) }), "maxAbs has 2 cases: want 1"},
		"fewer than 0 failed":               {output(func(c map[string]tensor.Tensor) { c["output.y.failed"] = column[int64](t, -1) }), "failed of case 0 is -1"},
		"fewer than 0 elements":             {output(func(c map[string]tensor.Tensor) { c["output.y.elements"] = column[int64](t, -7) }), "elements of case 0 is -7"},
		"a case less of an optional figure": {output(func(c map[string]tensor.Tensor) { c["output.y.rmse"] = column[float64](t) }), "rmse has 0 cases: want 1"},
		"another dtype":                     {output(func(c map[string]tensor.Tensor) { c["output.y.cosine"] = column[int64](t, 1) }), "float64"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := percase.Read(c.data)
			if registry.CodeOf(err) != registry.CodeInvalid || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one of code invalid with %q", err, c.want)
			}
		})
	}
}

// FuzzRead: whatever bytes are read, nothing is taken for more than it has, and every metric refuses
// columns that are not its own.
func FuzzRead(f *testing.F) {
	f.Add(written(f, small(f)), uint16(2))
	f.Add(written(f, percase.Figures{Accuracy: accuracy.Columns{"lost": column(f, 0.0),
		"won": column(f, 0.0), "right": column(f, 1.0), "answers": column[int64](f, 1)}}), uint16(1))
	f.Add(written(f, percase.Figures{Accuracy: accuracy.Columns{"engine.entries": column[int64](f, 1), "engine.several": column(f, false),
		"engine.class": column[int32](f, 1), "engine.hit": column(f, true), "engine.label": column(f, true), "reference.entries": column[int64](f, 0),
		"reference.several": column(f, false), "reference.class": column[int32](f), "reference.hit": column[bool](f), "reference.label": column[bool](f)}}), uint16(1))
	boxes := make(accuracy.Columns)
	for _, side := range []string{"reference.", "engine."} {
		boxes.Add(side, accuracy.Columns{"detections": column[int64](f, 1, 0),
			"class": column[int32](f, 3), "score": column(f, 0.5), "hits": column[int32](f, 1),
			"labels": column[int64](f, 1, 1), "labelClass": column[int32](f, 3, 4), "spoilt": column(f, false, false)})
	}
	f.Add(written(f, percase.Figures{Accuracy: boxes}), uint16(2))
	f.Fuzz(func(t *testing.T, data []byte, cases uint16) {
		got, err := percase.Read(data)
		if err != nil {
			return
		}
		total := 8 * len(got.Slices)
		for _, each := range got.Outputs {
			if r, ok := tensor.Pool(each, false); ok && (r.MaxError < 0 || r.CaseError < 0 || r.Spread < 0) {
				t.Fatalf("the cases give %+v, want no figure below 0", r)
			}
			total += 48 * len(each) // the optional figures may be left out
		}
		for _, column := range got.Accuracy {
			total += len(column.Data)
		}
		if total > len(data) {
			t.Fatalf("%d bytes give %d bytes of figures", len(data), total)
		}
		for _, name := range accuracy.Metrics() {
			m, err := accuracy.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			counter, err := accuracy.Restore(m, 1, int(cases), got.Accuracy)
			if err != nil {
				continue
			}
			if a := counter.Result(); a.Cases != int(cases) {
				t.Fatalf("%s: %d cases, want %d", name, a.Cases, cases)
			}
			if again := counter.Columns(); len(again) > len(got.Accuracy) {
				t.Fatalf("%s: %d columns out of %d", name, len(again), len(got.Accuracy))
			}
		}
	})
}
