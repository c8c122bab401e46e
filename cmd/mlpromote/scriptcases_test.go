package main

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// cmdSetCase sets the first element of a case to a number, in a tensor of a safetensors file;
// of a case of "all", every element of the tensor.
func cmdSetCase(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 4, 4)
	file := ts.MkAbs(args[0])
	tensors, err := tensorfile.ReadFile(file, tensorfile.Limits{})
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
	ts.Check(tensorfile.Write(f, tensors, nil))
	ts.Check(f.Close())
}

// cmdImages makes a folder of images.
func cmdImages(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	ts.Check(writeImages(ts.MkAbs(args[0])))
}

// writeImages makes a folder of images in subfolders for two classes: four images, one that is broken, a text,
// and one that is in no class.
func writeImages(folder string) error {
	asJPEG := func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) }
	for _, f := range []struct {
		name          string
		width, height int
		encode        func(io.Writer, image.Image) error
	}{
		{"one/a.png", 16, 9, png.Encode}, {"one/b.jpg", 9, 16, asJPEG}, {"two/c.png", 8, 8, png.Encode}, {"two/d.png", 5, 7, png.Encode},
		{"two/broken.png", 8, 8, png.Encode}, {"loose.png", 8, 8, png.Encode},
	} {
		m := image.NewNRGBA(image.Rect(0, 0, f.width, f.height))
		for y := range f.height {
			for x := range f.width {
				m.Set(x, y, color.NRGBA{uint8(16 * x), uint8(16 * y), uint8(x * y), 255})
			}
		}
		var data bytes.Buffer
		if err := f.encode(&data, m); err != nil {
			return err
		}
		if f.name == "two/broken.png" {
			data.Truncate(60)
		}
		path := filepath.Join(folder, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "two", "notes.txt"), []byte("of the second class"), 0o600)
}
