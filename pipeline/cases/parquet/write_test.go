package parquet_test

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	ours "mlpromote.dev/mlpromote/pipeline/cases/parquet"
)

// row has a column of each type that is read.
type row struct {
	Bool     bool                 `parquet:"bool"`
	Int8     int8                 `parquet:"int8"`
	Int32    int32                `parquet:"int32"`
	Int64    int64                `parquet:"int64"`
	Uint32   uint32               `parquet:"uint32"`
	Float    float32              `parquet:"float"`
	Double   float64              `parquet:"double"`
	Text     string               `parquet:"text"`
	Class    string               `parquet:"class,dict"`
	Maybe    *float64             `parquet:"maybe,optional"`
	MaybeInt *int64               `parquet:"maybe_int,optional"`
	List     []float32            `parquet:"list,list"`
	Bare     []int32              `parquet:"bare"`
	Image    [][]float64          `parquet:"image,list"`
	Delta    int64                `parquet:"delta,delta"`
	Delta32  int32                `parquet:"delta32,delta"`
	Lengths  string               `parquet:"lengths,delta"` // of what texts share with those before
	Split    float64              `parquet:"split,split"`
	When     int64                `parquet:"when,timestamp"`
	Struct   struct{ A, B int64 } `parquet:"struct"`
}

func rows(n int) []row {
	all := make([]row, n)
	for i := range all {
		r := &all[i]
		r.Bool, r.Int8, r.Int32, r.Int64 = i%3 == 0, int8(i*7), int32(-i*i), int64(i)<<50
		r.Uint32, r.Float, r.Double = math.MaxUint32-uint32(i), float32(i)/3, -float64(i)/7
		r.Text, r.Class = strings.Repeat("é", i%5)+fmt.Sprint(i), []string{"stay", "leave"}[i%2]
		if i%4 != 1 {
			d, n := float64(i)/2, int64(i)
			r.Maybe, r.MaybeInt = &d, &n
		}
		r.List, r.Bare = []float32{float32(i), 1, 2}, []int32{int32(i), -1}
		r.Image = [][]float64{{float64(i), 1, 2}, {3, 4, 5}}
		r.Delta, r.Delta32, r.Lengths, r.Split = int64(i*i*i)-5, math.MaxInt32-int32(i), fmt.Sprint(i*i), math.Sqrt(float64(i))
	}
	return all
}

// written is a file of the rows.
func written[T any](t testing.TB, rows []T, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(file []byte, limits ours.Limits, names ...string) (ours.Table, error) {
	return ours.Read(bytes.NewReader(file), int64(len(file)), limits, func(name string) bool {
		for _, want := range names {
			if name == want {
				return true
			}
		}
		return len(names) == 0
	})
}

// wanted are the columns of rows that can be read.
func wanted(all []row) map[string]ours.Column {
	w := map[string]ours.Column{}
	ints := func(name string, of func(row) int64) {
		c := ours.Column{Name: name, Kind: ours.Integer}
		for _, r := range all {
			c.Ints = append(c.Ints, of(r))
		}
		w[name] = c
	}
	floats := func(name string, kind ours.Kind, shape []int64, of func(row) []float64) {
		c := ours.Column{Name: name, Kind: kind, Shape: shape}
		for _, r := range all {
			c.Floats = append(c.Floats, of(r)...)
		}
		w[name] = c
	}
	texts := func(name string, of func(row) string) {
		c := ours.Column{Name: name, Kind: ours.Text}
		for _, r := range all {
			c.Texts = append(c.Texts, of(r))
		}
		w[name] = c
	}
	ints("bool", func(r row) int64 { return map[bool]int64{true: 1}[r.Bool] })
	w["bool"] = ours.Column{Name: "bool", Kind: ours.Boolean, Ints: w["bool"].Ints}
	ints("int8", func(r row) int64 { return int64(r.Int8) })
	ints("int32", func(r row) int64 { return int64(r.Int32) })
	ints("int64", func(r row) int64 { return r.Int64 })
	ints("uint32", func(r row) int64 { return int64(r.Uint32) })
	ints("delta", func(r row) int64 { return r.Delta })
	ints("delta32", func(r row) int64 { return int64(r.Delta32) })
	floats("float", ours.Single, nil, func(r row) []float64 { return []float64{float64(r.Float)} })
	floats("double", ours.Double, nil, func(r row) []float64 { return []float64{r.Double} })
	floats("split", ours.Double, nil, func(r row) []float64 { return []float64{r.Split} })
	floats("maybe", ours.Double, nil, func(r row) []float64 {
		if r.Maybe == nil {
			return []float64{math.NaN()}
		}
		return []float64{*r.Maybe}
	})
	floats("maybe_int", ours.Double, nil, func(r row) []float64 {
		if r.MaybeInt == nil {
			return []float64{math.NaN()}
		}
		return []float64{float64(*r.MaybeInt)}
	})
	floats("list", ours.Single, []int64{3}, func(r row) []float64 { return []float64{float64(r.List[0]), 1, 2} })
	floats("image", ours.Double, []int64{2, 3}, func(r row) []float64 { return append(append([]float64{}, r.Image[0]...), r.Image[1]...) })
	ints("bare", func(r row) int64 { return int64(r.Bare[0]) })
	bare := ours.Column{Name: "bare", Kind: ours.Integer, Shape: []int64{2}}
	for _, r := range all {
		bare.Ints = append(bare.Ints, int64(r.Bare[0]), int64(r.Bare[1]))
	}
	w["bare"] = bare
	texts("text", func(r row) string { return r.Text })
	texts("class", func(r row) string { return r.Class })
	texts("lengths", func(r row) string { return r.Lengths })
	return w
}

// What another implementation writes is read as it was, whatever its codec, pages and row groups.
func TestReadsWhatIsWritten(t *testing.T) {
	t.Parallel()
	all := rows(700)
	want := wanted(all)
	var names []string
	for name := range want {
		names = append(names, name)
	}
	for codec, c := range map[string]compress.Codec{"plain": &parquet.Uncompressed,
		"snappy": &parquet.Snappy, "gzip": &parquet.Gzip, "zstd": &parquet.Zstd} {
		for _, version := range []int{1, 2} {
			for _, group := range []int64{1000, 77} {
				t.Run(fmt.Sprintf("%s, pages of version %d, %d rows in a group", codec, version, group), func(t *testing.T) {
					t.Parallel()
					file := written(t, all, parquet.Compression(c), parquet.DataPageVersion(version), parquet.MaxRowsPerRowGroup(group), parquet.PageBufferSize(512))
					got, err := read(file, ours.Limits{}, names...)
					if err != nil {
						t.Fatal(err)
					}
					if got.Rows != len(all) || len(got.Columns) != len(want) {
						t.Fatalf("%d rows of %d columns, want %d of %d", got.Rows, len(got.Columns), len(all), len(want))
					}
					for _, c := range got.Columns {
						if !same(c, want[c.Name]) {
							t.Errorf("column %s is %.200s, want %.200s", c.Name, fmt.Sprint(c), fmt.Sprint(want[c.Name]))
						}
					}
				})
			}
		}
	}
}

// same compares columns, with NaN equal to NaN.
func same(a, b ours.Column) bool {
	if len(a.Floats) != len(b.Floats) {
		return false
	}
	for i := range a.Floats {
		if math.Float64bits(a.Floats[i]) != math.Float64bits(b.Floats[i]) && !(math.IsNaN(a.Floats[i]) && math.IsNaN(b.Floats[i])) {
			return false
		}
	}
	a.Floats, b.Floats = nil, nil
	return reflect.DeepEqual(a, b)
}
