package parquet_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	ours "mlpromote.dev/mlpromote/pipeline/cases/parquet"
)

// made is a structure of Thrift's compact protocol in the making. Fields come in the order of their numbers.
type made struct {
	data []byte
	last int64
}

func (m *made) field(id int64, kind byte) {
	m.data = append(m.data, byte(id-m.last)<<4|kind)
	m.last = id
}

func (m *made) int(id, v int64) *made {
	m.field(id, 5)
	m.data = binary.AppendUvarint(m.data, uint64(v<<1)^uint64(v>>63))
	return m
}

func (m *made) text(id int64, v string) *made {
	m.field(id, 8)
	m.data = append(binary.AppendUvarint(m.data, uint64(len(v))), v...)
	return m
}

func (m *made) structure(id int64, of *made) *made {
	m.field(id, 12)
	m.data = append(append(m.data, of.data...), 0)
	return m
}

func (m *made) list(id int64, of ...*made) *made {
	m.field(id, 9)
	m.data = append(m.data, byte(len(of))<<4|12)
	for _, one := range of {
		m.data = append(append(m.data, one.data...), 0)
	}
	return m
}

// onePage is a file with one optional column x of 64-bit integers, with one page.
func onePage(values, codec, size int64, page []byte) []byte {
	header := new(made).int(1, 0).int(2, size).int(3, int64(len(page))).
		structure(5, new(made).int(1, values).int(2, 0).int(3, 3).int(4, 3))
	file := append(append([]byte("PAR1"), header.data...), 0)
	file = append(file, page...)
	meta := new(made).int(1, 2).int(4, codec).int(5, values).int(7, int64(len(file)-4)).int(9, 4)
	footer := new(made).int(1, 1).
		list(2, new(made).text(4, "root").int(5, 1), new(made).int(1, 2).int(3, 1).text(4, "x")).
		int(3, values).
		list(4, new(made).list(1, new(made).structure(3, meta)).int(3, values))
	file = append(append(file, footer.data...), 0)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(footer.data)+1))
	return append(file, "PAR1"...)
}

// runs are definition levels: n times that the value is missing.
func runs(n uint64) []byte {
	levels := append(binary.AppendUvarint(nil, n<<1), 0)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(levels))), levels...)
}

// Files of a few bytes that stand for gigabytes are refused without taking them.
func TestRefusesBombs(t *testing.T) { //nolint:paralleltest // it counts the memory that is taken
	zeros := make([]byte, 64<<20)
	var gzipped bytes.Buffer
	w := gzip.NewWriter(&gzipped)
	_, _ = w.Write(zeros)
	_ = w.Close()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	few := runs(3)
	for name, c := range map[string]struct {
		file []byte
		want string // "" if it is read
	}{
		"three missing values":         {onePage(3, 0, int64(len(few)), few), ""},
		"a run beyond the values":      {onePage(3, 0, int64(len(runs(1<<60))), runs(1<<60)), ""},
		"a billion rows":               {onePage(1<<30, 0, int64(len(runs(1<<30))), runs(1<<30)), "rows: want at most"},
		"a hundred million rows":       {onePage(1<<27, 0, int64(len(runs(1<<27))), runs(1<<27)), "take more memory than a table may"},
		"gzip beyond what it says":     {onePage(3, 2, 100, gzipped.Bytes()), "its size differs from the header's"},
		"snappy beyond what it says":   {onePage(3, 1, 100, snappy.Encode(nil, zeros)), "its size differs from the header's"},
		"zstd beyond what it says":     {onePage(3, 6, 100, z.EncodeAll(zeros, nil)), "its size differs from the header's"},
		"a page of two gigabytes":      {onePage(3, 1, 1<<31-1, few), "want at most"},
		"a page that says less than 0": {onePage(3, 1, -1, few), "want at most"},
		"levels that are not there":    {onePage(4, 0, int64(len(few)), few), "ends in the middle"},
		"a codec that is not known":    {onePage(3, 77, 100, few), "its codec 77 is not read"},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // as above
			limits := ours.DefaultLimits()
			limits.Bytes = 64 << 20
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := read(c.file, limits)
			runtime.ReadMemStats(&after)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			const most = 200 << 20 // zstd takes what the frame says, up to the limit on a page
			if took := after.TotalAlloc - before.TotalAlloc; took > most {
				t.Errorf("%d bytes were taken for a file of %d, want at most %d", took, len(c.file), most)
			}
		})
	}
}
