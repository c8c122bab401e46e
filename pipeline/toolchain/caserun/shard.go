package caserun

import (
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// blockBytes is how much of the inputs of a shard is read at once: rows of a few bytes are not
// worth a system call each.
const blockBytes = 1 << 20

// Shard is one open file of cases. It is not safe for concurrent use.
type Shard struct {
	Name  string
	First int   // number of its first case in the set
	Count int64 // cases

	file    *tensorfile.File
	columns map[string]*column
}

// column is the cases of one input, of which a block is in memory.
type column struct {
	info       tensor.Info
	stride     int64 // bytes of a case
	block      []byte
	begin, end int64 // the cases of the block
}

// column is that of an input of an engine that the shard was checked against.
func (s *Shard) column(input string) *column {
	c, ok := s.columns[input]
	if !ok {
		info, _ := s.file.Info(input)
		c = &column{info: info, stride: size(info) / s.Count}
		s.columns[input] = c
	}
	return c
}

// Row returns the shape of a case of an input that the shard was checked against, and whether the case
// keeps its case dimension as a batch of one.
func (s *Shard) Row(slot Slot) (shape []int64, batched bool) {
	stacked := s.column(slot.Name).info.Shape
	if len(stacked) == slot.rank() {
		return append([]int64{1}, stacked[1:]...), true
	}
	return slices.Clone(stacked[1:]), false
}

// RowBytes returns the bytes of a case of an input that the shard was checked against.
func (s *Shard) RowBytes(input string) int64 { return s.column(input).stride }

// Read copies case c of an input that the shard was checked against into to, which has RowBytes. It reads
// small cases in blocks.
func (s *Shard) Read(input string, c int64, to []byte) error {
	column := s.column(input)
	most := int64(blockBytes / len(s.columns))
	if column.stride*4 > most { // it is worth a system call
		_, err := s.file.RowsInto(to[:0], input, c, c+1)
		return s.unread(err)
	}
	if c < column.begin || c >= column.end {
		end := min(c+most/max(column.stride, 1), s.Count)
		rows, err := s.file.RowsInto(column.block, input, c, end)
		if err != nil {
			return s.unread(err)
		}
		column.block, column.begin, column.end = rows.Data, c, end
	}
	copy(to, column.block[(c-column.begin)*column.stride:(c-column.begin+1)*column.stride])
	return nil
}

// Close closes the file.
func (s *Shard) Close() error { return s.file.Close() }

func (s *Shard) unread(err error) error {
	if err == nil {
		return nil
	}
	return driverproc.Errorf(driverproc.BadInput, "cases %s: %v", s.Name, err)
}

// size is the bytes of a tensor of a file that was opened, so that it is valid.
func size(i tensor.Info) int64 {
	n, _ := i.Bytes()
	return n
}
