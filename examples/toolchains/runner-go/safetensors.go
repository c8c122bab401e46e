package main

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Tensor is an array as safetensors has it: in the order of C, little-endian.
type Tensor struct {
	DType string // F32, I64 and so on
	Shape []int
	Data  []byte
}

var sizes = map[string]int{"BOOL": 1, "I8": 1, "U8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8}

// shard is a file of cases: tensors with a case dimension in front.
type shard struct {
	name    string
	tensors map[string]Tensor
	cases   int
}

func readShards(r request) (shards []*shard, err error) {
	for _, in := range r.Inputs {
		if in.Role == "cases" {
			tensors, err := read(in.Path)
			if err != nil {
				return nil, bad("%s: %v", in.Name, err)
			}
			shards = append(shards, &shard{name: in.Name, tensors: tensors})
		}
	}
	if len(shards) == 0 {
		return nil, bad("run: no cases")
	}
	return shards, nil
}

// read reads a file of safetensors, and checks it against its size.
func read(path string) (map[string]Tensor, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(text) < 8 || binary.LittleEndian.Uint64(text) > uint64(len(text)-8) {
		return nil, bad("this is no safetensors file")
	}
	start := 8 + int(binary.LittleEndian.Uint64(text))
	var header map[string]json.RawMessage
	if err := json.Unmarshal(text[8:start], &header); err != nil {
		return nil, err
	}
	delete(header, "__metadata__")
	tensors := make(map[string]Tensor)
	for name, raw := range header {
		var t struct {
			DType   string
			Shape   []int
			Offsets [2]int `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, err
		}
		want := sizes[t.DType]
		for _, n := range t.Shape {
			if n < 0 || n > len(text) {
				return nil, bad("tensor %s has shape %v", name, t.Shape)
			}
			want *= n
		}
		if len(t.Shape) == 0 || sizes[t.DType] == 0 || t.Offsets[0] < 0 || t.Offsets[0] > t.Offsets[1] || t.Offsets[1] > len(text)-start || t.Offsets[1]-t.Offsets[0] != want {
			return nil, bad("tensor %s of type %s and shape %v has bytes %v", name, t.DType, t.Shape, t.Offsets)
		}
		tensors[name] = Tensor{t.DType, t.Shape, text[start+t.Offsets[0] : start+t.Offsets[1]]}
	}
	return tensors, nil
}

// fits checks that the shard has the inputs of an engine. A tensor of an input's rank gives each case a leading dimension of 1, one of a rank
// more adds none.
func (s *shard) fits(e Engine) error {
	s.cases = -1
	for name, want := range e.Inputs() {
		t, ok := s.tensors[name]
		if !ok {
			return bad("%s: no tensor for the input %s", s.name, name)
		}
		shape := t.Shape[1:]
		if len(t.Shape) == len(want.Shape) {
			shape = append([]int{1}, shape...)
		}
		same := slices.EqualFunc(shape, want.Shape, func(have, want int) bool { return want < 0 || have == want })
		if t.DType != want.DType || !same || s.cases >= 0 && s.cases != t.Shape[0] || t.Shape[0] == 0 {
			return bad("%s: tensor %s is %s %v: the input wants %s %v for each case", s.name, name, t.DType, t.Shape, want.DType, want.Shape)
		}
		s.cases = t.Shape[0]
	}
	return nil
}

// feed is one case, and whether some tensor keeps its case dimension.
func (s *shard) feed(e Engine, row int) (map[string]Tensor, bool) {
	feed, batched := make(map[string]Tensor), false
	for name, want := range e.Inputs() {
		t := s.tensors[name]
		size := len(t.Data) / t.Shape[0]
		one := Tensor{t.DType, slices.Clone(t.Shape[1:]), t.Data[row*size : (row+1)*size]}
		if len(t.Shape) == len(want.Shape) {
			one.Shape, batched = append([]int{1}, one.Shape...), true
		}
		feed[name] = one
	}
	return feed, batched
}

// collected are the outputs of an engine for a shard.
type collected struct {
	folder string
	names  []string // of the engine's outputs
	only   []string // those that are asked for; empty: all
	rows   map[string][]Tensor
}

func (c *collected) check() error {
	for _, name := range c.only {
		if !slices.Contains(c.names, name) {
			return bad("there is no output %s", name)
		}
	}
	return nil
}

// add keeps the outputs of a case, and writes the shard with its last case.
func (c *collected) add(s *shard, made []Tensor, batched bool) error {
	if c.rows == nil {
		c.rows = make(map[string][]Tensor)
	}
	count := 0
	for i, name := range c.names {
		if len(c.only) > 0 && !slices.Contains(c.only, name) {
			continue
		}
		row := made[i]
		if batched && len(row.Shape) > 0 && row.Shape[0] == 1 {
			row.Shape = row.Shape[1:]
		}
		if had := c.rows[name]; len(had) > 0 && !slices.Equal(had[0].Shape, row.Shape) {
			return bad("the outputs %s of the cases of %s have different shapes", name, s.name)
		}
		c.rows[name] = append(c.rows[name], row)
		count = len(c.rows[name])
	}
	if count < s.cases {
		return nil
	}
	rows := c.rows
	c.rows = nil
	return write(filepath.Join(c.folder, filepath.FromSlash(s.name)), rows)
}

// write writes tensors, each from its rows.
func write(path string, rows map[string][]Tensor) error {
	header, at := make(map[string]any), 0
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		of := rows[name]
		for _, row := range of {
			data = append(data, row.Data...)
		}
		header[name] = map[string]any{"dtype": of[0].DType, "shape": append([]int{len(of)}, of[0].Shape...), "data_offsets": []int{at, len(data)}}
		at = len(data)
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text, data), 0o644)
}
