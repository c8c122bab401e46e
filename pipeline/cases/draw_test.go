package cases_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// generated draws cases of [n, 5] and gives their elements.
func generated(t *testing.T, dtype tensor.DType, draw cases.Draw, count int, seed uint64) (values []float64, file []byte) {
	t.Helper()
	dir := t.TempDir()
	iface := interfaceOf(dtype, []validators.Dim{sym("n"), size(5)}, nil)
	set, err := cases.Generate(count, seed, iface, map[string]cases.Draw{"x": draw}, dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := tensorfile.ReadFile(set.Files[0].Path, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if file, err = os.ReadFile(filepath.Clean(set.Files[0].Path)); err != nil {
		t.Fatal(err)
	}
	return all["x"].Float64s(), file
}

// Values stay in what they are drawn from, and boundary values are among them, for every seed.
func TestDraws(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dtype tensor.DType
		draw  cases.Draw
		has   []float64
		only  bool // no other value occurs
		least float64
		most  float64
	}{
		"token ids":       {tensor.Int64, cases.Draw{Bounded: true, Max: 49, Rows: 50}, []float64{0, 49}, false, 0, 49},
		"one row":         {tensor.Int64, cases.Draw{Bounded: true, Rows: 1}, []float64{0}, true, 0, 0},
		"bytes":           {tensor.Uint8, cases.Draw{Bounded: true, Max: 255}, []float64{0, 255}, false, 0, 255},
		"signed bytes":    {tensor.Int8, cases.Draw{Bounded: true, Min: -128, Max: 127}, []float64{-128, 0, 127}, false, -128, 127},
		"pixels":          {tensor.Float32, cases.Draw{Bounded: true, Max: 1}, []float64{0, 1}, false, 0, 1},
		"around zero":     {tensor.Float64, cases.Draw{Bounded: true, Min: -2, Max: 3}, []float64{-2, 0, 3}, false, -2, 3},
		"listed":          {tensor.Float32, cases.Draw{Values: []float64{0.5, -1, 8}}, []float64{0.5, -1, 8}, true, -1, 8},
		"normal":          {tensor.Float32, cases.Draw{}, []float64{0}, false, -8, 8},
		"of the type":     {tensor.Int32, cases.Draw{}, []float64{0, 1}, true, 0, 1},
		"true and false":  {tensor.Bool, cases.Draw{}, []float64{0, 1}, true, 0, 1},
		"a mask":          {tensor.Int64, cases.Draw{Mask: true}, []float64{0, 1}, true, 0, 1},
		"a mask of bools": {tensor.Bool, cases.Draw{Mask: true}, []float64{0, 1}, true, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				values, file := generated(t, c.dtype, c.draw, 16, seed)
				for _, want := range c.has {
					if !slices.Contains(values, want) {
						t.Errorf("seed %d: no %v among %v", seed, want, values)
					}
				}
				if slices.Min(values) < c.least || slices.Max(values) > c.most {
					t.Errorf("seed %d: values from %v to %v, want from %v to %v", seed, slices.Min(values), slices.Max(values), c.least, c.most)
				}
				distinct := slices.Compact(slices.Sorted(slices.Values(values)))
				if c.only != (len(distinct) == len(c.has)) {
					t.Errorf("seed %d: %d values are there, and those to have are %v", seed, len(distinct), c.has)
				}
				if _, again := generated(t, c.dtype, c.draw, 16, seed); !bytes.Equal(file, again) {
					t.Errorf("seed %d gives other bytes the second time", seed)
				}
			}
			_, one := generated(t, c.dtype, c.draw, 16, 1)
			if _, two := generated(t, c.dtype, c.draw, 16, 2); bytes.Equal(one, two) && len(c.has) > 1 {
				t.Error("seeds 1 and 2 give the same bytes")
			}
		})
	}
}

// A single case has boundary values too, and so few have all of them that can.
func TestDrawsOfFewCases(t *testing.T) {
	t.Parallel()
	draw := cases.Draw{Bounded: true, Min: -1, Max: 1}
	for count, want := range map[int]int{1: 1, 2: 2, 3: 3} {
		values, _ := generated(t, tensor.Float64, draw, count, 5)
		has := 0
		for _, edge := range []float64{-1, 0, 1} {
			if slices.Contains(values, edge) {
				has++
			}
		}
		if has < want {
			t.Errorf("%d cases have %d boundary values, want %d: %v", count, has, want, values)
		}
	}
}

// The first mask hides nothing; those after it end in zeros and hide not all.
func TestMasks(t *testing.T) {
	t.Parallel()
	values, _ := generated(t, tensor.Int64, cases.Draw{Mask: true}, 32, 1)
	if !slices.Equal(values[:5], []float64{1, 1, 1, 1, 1}) {
		t.Errorf("the first mask is %v, want only ones", values[:5])
	}
	for at := 0; at < len(values); at += 5 {
		row := values[at : at+5]
		for i := 1; i < 5; i++ {
			if row[0] != 1 || row[i] > row[i-1] {
				t.Errorf("mask %d is %v, want ones and then zeros", at/5, row)
				break
			}
		}
	}
}

// Values that a type does not have, or a table no row for, are refused.
func TestDrawCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dtype tensor.DType
		draw  cases.Draw
		says  string // empty: it is right
	}{
		"the last row":        {tensor.Int64, cases.Draw{Bounded: true, Max: 49, Rows: 50}, ""},
		"a row too many":      {tensor.Int64, cases.Draw{Bounded: true, Max: 50, Rows: 50}, "50 is none of 50 rows: want numbers from 0 to 49"},
		"a row below":         {tensor.Int64, cases.Draw{Values: []float64{-1}, Rows: 50}, "-1 is none of 50 rows"},
		"most of a byte":      {tensor.Uint8, cases.Draw{Bounded: true, Max: 255}, ""},
		"more than a byte":    {tensor.Uint8, cases.Draw{Bounded: true, Max: 256}, "256 is no value of uint8: want numbers from 0 to 255, without a fraction"},
		"a fraction":          {tensor.Int32, cases.Draw{Values: []float64{0.5}}, "0.5 is no value of int32"},
		"a fraction of float": {tensor.Float32, cases.Draw{Values: []float64{0.5}}, ""},
		"too large a float":   {tensor.Float32, cases.Draw{Bounded: true, Max: 1e39}, "1e+39 is no value of float32"},
		"two, of a bool":      {tensor.Bool, cases.Draw{Values: []float64{2}}, "2 is no value of bool"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.draw.Check(c.dtype)
			if c.says == "" && err != nil || c.says != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
}
