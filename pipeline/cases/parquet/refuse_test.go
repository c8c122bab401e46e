package parquet_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	ours "mlpromote.dev/mlpromote/pipeline/cases/parquet"
)

// What is not read is refused with what to do, and does no harm to columns that are.
func TestRefusesColumns(t *testing.T) {
	t.Parallel()
	type ragged struct {
		X []float64 `parquet:"x,list"`
	}
	type missing struct {
		X *string `parquet:"x,optional"`
	}
	type deep struct {
		X [][][][][]int64 `parquet:"x,list"`
	}
	one := "a"
	for name, c := range map[string]struct {
		file   []byte
		column string
		want   string
	}{
		"a time":                 {written(t, rows(3)), "when", "dates and decimals have to become the numbers"},
		"a struct":               {written(t, rows(3)), "struct", "it is a struct or a map"},
		"lists of two lengths":   {written(t, []ragged{{[]float64{1, 2}}, {[]float64{3}}}), "x", "row 1 has a list of 1, and those before have 2"},
		"an empty list":          {written(t, []ragged{{[]float64{1, 2}}, {}}), "x", "row 1: a list is empty or missing"},
		"a missing text":         {written(t, []missing{{&one}, {nil}}), "x", "row 1: a value is missing: only numbers may be"},
		"lists that nest deeply": {written(t, []deep{{[][][][][]int64{{{{{1}}}}}}}), "x", "5 deep: want at most 4"},
		"another codec":          {written(t, rows(3), parquet.Compression(&parquet.Brotli)), "int64", "write the file with snappy, gzip, zstd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := read(c.file, ours.Limits{}, c.column); err == nil ||
				!strings.Contains(err.Error(), `column "`+c.column+`": `) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one about column %q with %q", err, c.column, c.want)
			}
		})
	}
	if got, err := read(written(t, rows(3)), ours.Limits{}, "bool"); err != nil || len(got.Names) != 20 || len(got.Columns) != 1 {
		t.Errorf("one of the columns: %d of %d, error %v; want 1 of 20", len(got.Columns), len(got.Names), err)
	}
}

// Each limit is kept at its value and refused one below.
func TestLimits(t *testing.T) {
	t.Parallel()
	type narrow struct {
		A int64  `parquet:"a"`
		B string `parquet:"b"`
	}
	file := written(t, []narrow{{1, "x"}, {2, "yz"}, {3, ""}})
	footer := int64(binary.LittleEndian.Uint32(file[len(file)-8:]))
	enough := ours.Limits{Footer: footer, Items: 1 << 10, Columns: 2, Rows: 3, Bytes: 3*8 + 3*16 + 3}
	if _, err := read(file, enough); err != nil {
		t.Fatalf("with exactly what it takes: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*ours.Limits)
		want   string
	}{
		"footer":  {func(l *ours.Limits) { l.Footer-- }, "its footer has "},
		"columns": {func(l *ours.Limits) { l.Columns-- }, "more than 1 columns"},
		"rows":    {func(l *ours.Limits) { l.Rows-- }, "it has 3 rows: want at most 2"},
		"bytes":   {func(l *ours.Limits) { l.Bytes-- }, "take more memory than a table may"},
		"items":   {func(l *ours.Limits) { l.Items = 5 }, "longer than it can be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := enough
			c.change(&limits)
			if _, err := read(file, limits); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// Texts that repeat those before them are small in the file, and their size in memory is what counts.
func TestRefusesTextsThatGrow(t *testing.T) {
	t.Parallel()
	type shared struct {
		X string `parquet:"x,delta"`
	}
	type looked struct {
		X string `parquet:"x,dict"`
	}
	text := strings.Repeat("x", 1<<16)
	ofPrefixes, ofDictionary := make([]shared, 600), make([]looked, 600)
	for i := range ofPrefixes {
		ofPrefixes[i].X, ofDictionary[i].X = text, text
	}
	for name, file := range map[string][]byte{
		"prefixes":     written(t, ofPrefixes, parquet.PageBufferSize(64<<20), parquet.Compression(&parquet.Zstd)),
		"a dictionary": written(t, ofDictionary, parquet.Compression(&parquet.Zstd)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := ours.DefaultLimits()
			for bytes, want := range map[int64]bool{600 * (1<<16 + 16): true, 600*(1<<16+16) - 1: false} {
				limits.Bytes = bytes
				_, err := read(file, limits)
				if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "take more memory than a table may") {
					t.Errorf("%d bytes in a file of %d: error %v, want it read: %t", bytes, len(file), err, want)
				}
			}
		})
	}
}

// Files that claim more than they have are refused before memory is taken for it.
func TestRefusesClaims(t *testing.T) {
	t.Parallel()
	whole := written(t, rows(20))
	withFooter := func(footer ...byte) []byte {
		file := append([]byte("PAR1"), footer...)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(footer)))
		return append(file, "PAR1"...)
	}
	patched := func(at int, with string) []byte {
		file := bytes.Clone(whole)
		copy(file[at:], with)
		return file
	}
	end := len(whole)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":                  {nil, "too short"},
		"text":                     {[]byte("a,b\n1,2\n3,4\n"), "so it is no Parquet file"},
		"half a file":              {whole[:end/2], "so it is no Parquet file"},
		"an encrypted footer":      {patched(end-4, "PARE"), "it is encrypted"},
		"a footer beyond the file": {patched(end-8, "\xff\xff\xff\x7f"), "there is room for"},
		"a list of 2^31 columns":   {withFooter(0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0), "longer than it can be"},
		"structures without end":   {withFooter(bytes.Repeat([]byte{0x1c}, 1000)...), "more than 32 deep"},
		"lists without end":        {withFooter(append([]byte{0x19}, bytes.Repeat([]byte{0x19}, 1000)...)...), "deep"},
		"a text of 2^60 bytes":     {withFooter(0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f), "in the middle"},
		"no schema":                {withFooter(0), "no schema"},
		"-1 rows":                  {withFooter(0x36, 0x01, 0), "it has -1 rows"},
		"pages that were cut out":  {append(append([]byte{}, whole[:100]...), whole[end/2:]...), ""},
		"pages of another file":    {append(append([]byte("PAR1"), bytes.Repeat([]byte{0xff}, end/3)...), whole[end/3+4:]...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := read(c.file, ours.Limits{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// Whatever bytes a file has, it is read or refused, in little memory.
func FuzzRead(f *testing.F) {
	for _, version := range []int{1, 2} {
		f.Add(written(f, rows(20), parquet.DataPageVersion(version)))
		f.Add(written(f, rows(3), parquet.DataPageVersion(version), parquet.Compression(&parquet.Snappy)))
		f.Add(written(f, rows(3), parquet.DataPageVersion(version), parquet.Compression(&parquet.Zstd)))
	}
	f.Add(onePage(3, 0, int64(len(runs(3))), runs(3)))
	f.Add([]byte("PAR1\x00\x00\x00\x00\x00PAR1"))
	limits := ours.Limits{Footer: 1 << 20, Items: 1 << 12, Columns: 100, Rows: 1 << 16, Bytes: 1 << 20}
	f.Fuzz(func(t *testing.T, file []byte) {
		all, err := ours.Look(bytes.NewReader(file), int64(len(file)), limits)
		for _, column := range all {
			got, err := read(file, limits, column.Name)
			if err != nil {
				if strings.Contains(err.Error(), "it cannot be read: ") {
					t.Errorf("a panic: %v", err)
				}
				continue
			}
			values := got.Rows
			for _, n := range got.Columns[0].Shape {
				values *= int(n)
			}
			c := got.Columns[0]
			if n := len(c.Ints) + len(c.Floats) + len(c.Texts); n != values && got.Rows > 0 {
				t.Errorf("%d values in %d rows of shape %v", n, got.Rows, c.Shape)
			}
		}
		if err != nil && len(all) > 0 {
			t.Errorf("columns %v beside error %v", all, err)
		}
	})
}
