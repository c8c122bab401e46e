package images

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// file is a file of the folder, and the class that it lies in.
type file struct {
	path  string // below the folder, with slashes
	class int    // -1 for none
}

// Write makes a case of each image of a folder and passes it to add. Images lie in the folder itself, or in
// subfolders, named after their classes. A file that is no image that fits is left out. Errors: CodeInvalid, also
// if no image is left; those of add.
func (o Options) Write(folder string, add func(cases.Row) error) (Made, error) {
	r, err := o.recipe()
	if err != nil {
		return Made{}, err
	}
	made := Made{}
	files, err := o.list(folder, &made)
	if err != nil {
		return Made{}, err
	}
	if most := o.sample(&files); most > 0 && int64(most) > o.MaxBytes/max(r.bytes(), 1) {
		return Made{}, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s: %d images of %d bytes each are more than the %d of --max-bytes", folder, most, r.bytes(), o.MaxBytes),
			"--count takes a sample of them")
	}
	for _, f := range files {
		if o.Count > 0 && made.Count == o.Count {
			made.Passed++
			continue
		}
		row, err := r.row(filepath.Join(folder, filepath.FromSlash(f.path)))
		if registry.HasCode(err, registry.CodeInvalid) {
			return Made{}, registry.Errorf(registry.CodeInvalid, "%s: %w", filepath.Join(folder, f.path), err)
		}
		if err != nil {
			made.leave(f.path, err.Error())
			continue
		}
		if made.Labels != "" {
			if row[made.Labels], err = tensor.New([]int64{int64(f.class)}, 1); err != nil {
				return Made{}, err
			}
		}
		if err := add(row); err != nil {
			return Made{}, err
		}
		made.Count++
	}
	slices.SortFunc(made.LeftOut, func(a, b LeftOut) int { return strings.Compare(a.File, b.File) })
	if made.Count == 0 {
		return Made{}, noneLeft(folder, made.LeftOut)
	}
	return made, nil
}

func noneLeft(folder string, left []LeftOut) error {
	if len(left) == 0 {
		return registry.Errorf(registry.CodeInvalid, "%s: no images: want PNG or JPEG files in it, or in a subfolder for each class", folder)
	}
	return registry.Errorf(registry.CodeInvalid, "%s: no image of %s can be taken; %s: %s",
		folder, registry.Count(len(left), "file"), left[0].File, left[0].Reason)
}

func (m *Made) leave(file, reason string) { m.LeftOut = append(m.LeftOut, LeftOut{file, reason}) }

// list finds the files of a folder and of its subfolders, and numbers the classes.
func (o Options) list(folder string, made *Made) ([]file, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "images: %w", err)
	}
	var flat, subfolders []string
	for _, entry := range entries {
		name := entry.Name()
		info, err := os.Stat(filepath.Join(folder, name))
		switch {
		case strings.HasPrefix(name, "."):
		case err != nil:
			made.leave(name, reasonOf(err).Error())
		case info.IsDir():
			subfolders = append(subfolders, name)
		default:
			flat = append(flat, name)
		}
	}
	if len(subfolders) == 0 {
		if o.Classes != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "%s: no subfolders, so --classes has nothing to number", folder)
		}
		var files []file
		for _, name := range flat {
			files = append(files, file{name, -1})
		}
		return files, nil
	}
	for _, name := range flat {
		made.leave(name, "not in the subfolder of a class")
	}
	return o.inClasses(folder, subfolders, made)
}

func (o Options) inClasses(folder string, subfolders []string, made *Made) ([]file, error) {
	made.Labels, made.Classes = o.Label, o.Classes
	if made.Labels == "" {
		made.Labels = "label"
	}
	if _, ok := o.Inputs.Input(made.Labels); ok {
		return nil, registry.Errorf(registry.CodeInvalid, "%q is an input of the model, so the labels need another name: --label", made.Labels)
	}
	if made.Classes == nil {
		made.Classes = subfolders // ReadDir sorts
	}
	var files []file
	for _, class := range subfolders {
		number := slices.Index(made.Classes, class)
		if number < 0 {
			return nil, registry.Errorf(registry.CodeInvalid, "%s: subfolder %s is none of the %d classes of --classes", folder, class, len(made.Classes))
		}
		entries, err := os.ReadDir(filepath.Join(folder, class))
		if err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "images: %w", err)
		}
		for _, entry := range entries {
			where := path.Join(class, entry.Name())
			switch {
			case strings.HasPrefix(entry.Name(), "."):
			case entry.IsDir():
				made.leave(where, "a folder inside the folder of a class")
			case len(files) == maxFiles:
				return nil, registry.Errorf(registry.CodeInvalid, "%s: more than %d files", folder, maxFiles)
			default:
				files = append(files, file{where, number})
			}
		}
	}
	return files, nil
}

// sample puts the files in a random order that is the same each time, where not all are taken. It returns
// how many cases there can be at most.
func (o Options) sample(files *[]file) int {
	if o.Count == 0 {
		return len(*files)
	}
	rank := func(f file) []byte {
		sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(f.path), o.Seed))
		return sum[:]
	}
	slices.SortFunc(*files, func(a, b file) int { return bytes.Compare(rank(a), rank(b)) })
	return min(o.Count, len(*files))
}

// row makes a case of a file. Its errors say why it is left out.
func (r recipe) row(path string) (cases.Row, error) {
	data, err := readFile(path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoImage("it disappeared")
	}
	if err != nil {
		return nil, err
	}
	p, err := decode(data, r.channels == 1, maxPixels)
	if err == nil {
		p, err = r.fitted(p)
	}
	if err != nil {
		return nil, err
	}
	return cases.Row{r.input: {DType: r.dtype, Shape: r.shape(), Data: r.encode(p)}}, nil
}

// encode gives the values of an image in the order and the type of the input.
func (r recipe) encode(p pixels) []byte {
	out := make([]byte, 0, r.bytes())
	at := func(pixel, channel int) {
		source := channel
		if r.color == BGR {
			source = r.channels - 1 - channel
		}
		out = r.value(out, p.data[pixel*r.channels+source], channel)
	}
	if r.last {
		for i := range p.width * p.height {
			for c := range r.channels {
				at(i, c)
			}
		}
		return out
	}
	for c := range r.channels {
		for i := range p.width * p.height {
			at(i, c)
		}
	}
	return out
}

// value appends a normalized byte. Each operation rounds to the type of the input, as frameworks that
// normalize in that type do.
func (r recipe) value(out []byte, v byte, channel int) []byte {
	switch r.dtype {
	case tensor.Uint8:
		return append(out, v)
	case tensor.Float32:
		x := float32(float32(v)*float32(r.scale.Numerator)) / float32(r.scale.Denominator)
		x = float32(x-float32(r.mean[channel])) / float32(r.std[channel])
		return binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	x := float64(float64(v)*r.scale.Numerator) / r.scale.Denominator
	x = float64(x-r.mean[channel]) / r.std[channel]
	return binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
}
