package recording

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/cases/images"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/validators"
)

// classesFile lies in a folder of cases whose labels are made from names, one on a line.
const classesFile = "classes.txt"

// take makes cases of a file or of a folder of images.
func (f *Flags) take(u *ui.UI, iface validators.Interface, maxBytes int64) error {
	info, err := os.Stat(f.from)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "--from: %w", err)
	}
	var taken Taken
	if info.IsDir() {
		taken, err = f.takeImages(u, iface, maxBytes)
	} else {
		taken, err = f.takeFile(u, iface)
	}
	if err != nil {
		return err
	}
	labels := ""
	if taken.Labels != "" {
		labels = ", labels: " + taken.Labels
	}
	u.Note("wrote %s to %s; in the spec: cases: {path: %s/%s}", registry.Count(taken.Cases, "case"), f.To, filepath.Base(f.To), labels)
	return u.Result(f.To, taken)
}

func (f *Flags) takeFile(u *ui.UI, iface validators.Interface) (Taken, error) {
	if len(f.ofImages) > 0 {
		return Taken{}, registry.Errorf(registry.CodeInvalid, "--%s is for images, and %s is a file", f.ofImages[0], f.from)
	}
	imported, err := cases.Import{Inputs: iface, File: f.from, Label: f.label, To: f.To, Add: f.Add}.Run()
	if err != nil {
		return Taken{}, err
	}
	Notes(u, imported)
	return Taken{Folder: f.To, Cases: imported.Count, Labels: imported.Labels, LeftOut: []images.LeftOut{}}, nil
}

// takeImages makes cases of a folder of images.
func (f *Flags) takeImages(u *ui.UI, iface validators.Interface, maxBytes int64) (Taken, error) {
	o := images.Options{Inputs: *anySize(&iface), Layout: f.layout, Color: f.color,
		Mean: f.mean, Std: f.std, Label: f.label, Count: f.Count, Seed: f.Seed, MaxBytes: maxBytes}
	if err := f.complete(&o); err != nil {
		return Taken{}, err
	}
	found, err := cases.Look(f.To, f.Add)
	if err != nil {
		return Taken{}, err
	}
	writer, err := cases.NewWriter(f.To, found.Next)
	if err != nil {
		return Taken{}, err
	}
	made, err := o.Write(f.from, func(row cases.Row) error {
		if signature := row.Signature(); found.Signature != "" && found.Signature != signature {
			return registry.Errorf(registry.CodeInvalid, "%s: its cases have %s: those in %s have %s", f.from, signature, f.To, found.Signature)
		}
		return writer.Add(row)
	})
	if err == nil {
		err = keepClasses(f.To, made.Classes, found.Count > 0)
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		writer.Discard()
		return Taken{}, explained(f.from, err)
	}
	leftOut(u, f.To, made)
	return Taken{Folder: f.To, Cases: made.Count, Labels: made.Labels, Classes: made.Classes, LeftOut: append([]images.LeftOut{}, made.LeftOut...)}, nil
}

// complete reads the flags that are texts.
func (f *Flags) complete(o *images.Options) (err error) {
	switch o.Layout {
	case "", images.NCHW, images.NHWC:
	default:
		return registry.Errorf(registry.CodeInvalid, "--layout %q: want NCHW or NHWC", f.layout)
	}
	switch o.Color {
	case "", images.RGB, images.BGR, images.Gray:
	default:
		return registry.Errorf(registry.CodeInvalid, "--color %q: want rgb, bgr or gray", f.color)
	}
	if f.size != "" {
		width, height, _ := strings.Cut(f.size, "x")
		o.Width, err = strconv.Atoi(width)
		if err == nil {
			o.Height, err = strconv.Atoi(height)
		}
		if err != nil || o.Width < 1 || o.Height < 1 {
			return registry.Errorf(registry.CodeInvalid, "--size %q: want WIDTHxHEIGHT, such as 224x224", f.size)
		}
	}
	if f.scale != "" {
		if o.Scale, err = images.ParseScale(f.scale); err != nil {
			return err
		}
	}
	fit, shorter, ok := strings.Cut(f.fit, ":")
	o.Fit = fit
	if ok {
		if o.Shorter, err = strconv.Atoi(shorter); err != nil || o.Shorter < 1 {
			return registry.Errorf(registry.CodeInvalid, "--fit %q: want crop, crop:N, stretch or pad", f.fit)
		}
	}
	if f.classes != "" {
		o.Classes, err = readClasses(f.classes)
	}
	return err
}

// maxClasses bounds a file of classes, in bytes.
const maxClasses = 16 << 20

func readClasses(file string) ([]string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "--classes: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxClasses {
		return nil, registry.Errorf(registry.CodeInvalid, "--classes %s: want a file of at most %d bytes", file, maxClasses)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "--classes: %w", err)
	}
	var classes []string
	for i, line := range strings.Split(strings.TrimRight(string(text), "\r\n"), "\n") {
		class := strings.TrimSpace(line)
		if class == "" || slices.Contains(classes, class) {
			return nil, registry.Errorf(registry.CodeInvalid, "%s:%d: class %q: want a name on each line, each once", file, i+1, class)
		}
		classes = append(classes, class)
	}
	return classes, nil
}

// keepClasses writes the names of the classes beside the cases. Cases that are added have the same ones.
func keepClasses(folder string, classes []string, more bool) error {
	if classes == nil {
		return nil
	}
	path := filepath.Join(folder, classesFile)
	text := []byte(strings.Join(classes, "\n") + "\n")
	if before, err := os.ReadFile(path); more && err == nil && !bytes.Equal(before, text) {
		return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s has other classes than these cases", path), "--classes %s", path)
	}
	return atomicfile.Write(path, text, 0o666)
}

// explained says what else a folder without images may be.
func explained(folder string, err error) error {
	files, none := cases.FilesOf(folder)
	if none != nil || !registry.HasCode(err, registry.CodeInvalid) {
		return err
	}
	return registry.WithHint(err, "%s holds %s, so it may be a folder of cases as it is: cases: {path: %s/}",
		folder, filepath.Base(files[0]), filepath.Base(folder))
}

// maxTold is how many files that were left out are told to people. JSON has all.
const maxTold = 10

func leftOut(u *ui.UI, to string, made images.Made) {
	for i, left := range made.LeftOut {
		if i == maxTold {
			u.Note("left out %d more files; --output json has all", len(made.LeftOut)-maxTold)
			break
		}
		u.Note("left out %s: %s", left.File, left.Reason)
	}
	if made.Classes != nil {
		u.Note("%d classes; in the spec: outputs: {NAME: {labels: %s}}", len(made.Classes), filepath.ToSlash(filepath.Join(filepath.Base(to), classesFile)))
	}
}
