package main

import (
	"encoding/binary"
	"math"
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// cmdSetCase sets the first element of a case to a number, in a tensor of a safetensors file;
// of a case of "all", every element of the tensor.
func cmdSetCase(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 4, 4)
	file := ts.MkAbs(args[0])
	tensors, err := tensor.ReadFile(file, tensor.Limits{})
	ts.Check(err)
	t, ok := tensors[args[1]]
	if !ok {
		ts.Fatalf("%s has no tensor %s", args[0], args[1])
	}
	value, err := strconv.ParseFloat(args[3], 64)
	ts.Check(err)
	size := t.DType.Size()
	from, to := 0, len(t.Data)
	if args[2] != "all" {
		row, err := strconv.Atoi(args[2])
		ts.Check(err)
		from = row * len(t.Data) / int(t.Shape[0])
		to = from + size
	}
	for at := from; at < to; at += size {
		switch t.DType {
		case tensor.Float32:
			binary.LittleEndian.PutUint32(t.Data[at:], math.Float32bits(float32(value)))
		case tensor.Int64:
			binary.LittleEndian.PutUint64(t.Data[at:], uint64(int64(value)))
		default:
			ts.Fatalf("%s is %s", args[1], t.DType)
		}
	}
	f, err := os.Create(file)
	ts.Check(err)
	ts.Check(tensor.Write(f, tensors, nil))
	ts.Check(f.Close())
}
