//go:build cgo

package ort

import (
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// blockBytes is how much of the inputs of a shard is read at once: rows of a few bytes are not
// worth a system call each.
const blockBytes = 1 << 20

// shard is one open file of cases.
type shard struct {
	name    string
	file    *tensorfile.File
	first   int   // number of its first case in the set
	count   int64 // cases
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
func (s *shard) column(input string) *column {
	c, ok := s.columns[input]
	if !ok {
		info, _ := s.file.Info(input)
		c = &column{info: info, stride: size(info) / s.count}
		s.columns[input] = c
	}
	return c
}

// row returns the shape of a case for an input of that rank, and whether it keeps its case
// dimension as a batch of one.
func (c *column) row(rank int) (shape []int64, batched bool) {
	if len(c.info.Shape) == rank {
		return append([]int64{1}, c.info.Shape[1:]...), true
	}
	return slices.Clone(c.info.Shape[1:]), false
}

// read copies a case of an input to where an engine reads it.
func (s *shard) read(input string, i int64, to []byte) error {
	c := s.column(input)
	most := int64(blockBytes / len(s.columns))
	if c.stride*4 > most { // it is worth a system call
		_, err := s.file.RowsInto(to[:0], input, i, i+1)
		return s.unread(err)
	}
	if i < c.begin || i >= c.end {
		end := min(i+most/max(c.stride, 1), s.count)
		rows, err := s.file.RowsInto(c.block, input, i, end)
		if err != nil {
			return s.unread(err)
		}
		c.block, c.begin, c.end = rows.Data, i, end
	}
	copy(to, c.block[(i-c.begin)*c.stride:(i-c.begin+1)*c.stride])
	return nil
}

func (s *shard) unread(err error) error {
	if err == nil {
		return nil
	}
	return driverproc.Errorf(driverproc.BadInput, "cases %s: %v", s.name, err)
}

// size is the bytes of a tensor of a file that was opened, so that it is valid.
func size(i tensor.Info) int64 {
	n, _ := i.Bytes()
	return n
}
