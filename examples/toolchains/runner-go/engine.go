package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
)

// toolchain is the name of the manifest.
const toolchain = "acc"

// version asks the runtime for its version: numbers with dots.
func version() string { return "2.1" }

// Engine is what your runtime loads. Replace linear, which computes y = x·w + b, by it.
type Engine interface {
	Inputs() map[string]Tensor // types and shapes, -1 for an open dimension
	Outputs() []string
	Run(feed map[string]Tensor) ([]Tensor, error) // in the order of Outputs
}

type linear struct {
	Input, Output string
	Weights       [][]float32
	Bias          []float32
	Relu          bool
	Next          *linear
}

// load opens an engine. options are those of the load profile, by the runtime's own names; they are nil for a fixed run, which computes the
// same bytes each time.
func load(path string, options map[string]string) (Engine, error) {
	for name := range options {
		return nil, bad("%s takes no load options, and there is %s", toolchain, name)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	e := &linear{}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(e); err != nil || len(e.Weights) == 0 {
		return nil, bad("this is no engine of %s: %v", toolchain, err)
	}
	return e, nil
}

func (e *linear) Inputs() map[string]Tensor {
	return map[string]Tensor{e.Input: {DType: "F32", Shape: []int{-1, len(e.Weights)}}}
}

func (e *linear) Outputs() []string {
	if e.Next != nil {
		return e.Next.Outputs()
	}
	return []string{e.Output}
}

func (e *linear) Run(feed map[string]Tensor) ([]Tensor, error) {
	x := feed[e.Input]
	values := make([]float32, len(x.Data)/4)
	if _, err := binary.Decode(x.Data, binary.LittleEndian, values); err != nil {
		return nil, err
	}
	for layer := e; layer != nil; layer = layer.Next {
		var next []float32
		for row := range x.Shape[0] {
			for column, sum := range layer.Bias {
				for i, weights := range layer.Weights {
					sum += values[row*len(layer.Weights)+i] * weights[column]
				}
				if layer.Relu {
					sum = float32(math.Max(0, float64(sum)))
				}
				next = append(next, sum)
			}
		}
		values = next
	}
	data, err := binary.Append(nil, binary.LittleEndian, values)
	return []Tensor{{"F32", []int{x.Shape[0], len(values) / x.Shape[0]}, data}}, err
}
