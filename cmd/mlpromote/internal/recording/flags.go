// Package recording makes folders of cases: from the requests of a service, from files and from images. It
// connects the packages that do so with the command line.
package recording

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/pipeline/capture"
	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/cases/images"
	"mlpromote.dev/mlpromote/pipeline/draft"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// Imported says what came of a file of cases.
type Imported = cases.Imported

// Captured says what was recorded from a service.
type Captured = capture.Recorded

// Divided says what came of a split.
type Divided = cases.Divided

// Taken says what was taken from files.
type Taken struct {
	Folder  string           `json:"folder"`
	Cases   int              `json:"cases"`
	Labels  string           `json:"labels,omitempty"`  // the tensor with the labels; absent without any
	Classes []string         `json:"classes,omitempty"` // by number; only of images in subfolders
	LeftOut []images.LeftOut `json:"leftOut"`           // files that are no images that fit
}

// Flags are those of cases record.
type Flags struct {
	To, File, MaxBytes string
	Add                bool
	Count              int
	Seed               uint64

	proxy, listen, model string
	share                float64
	inputs               []string
	outputs              bool
	duration             time.Duration

	from, label, size, layout, color, scale, fit, classes string
	mean, std                                             []float64
	ofImages                                              []string // the flags for images that were given
}

// The flags of only one kind of recording.
var (
	proxyFlags = []string{"listen", "model", "sample", "input", "outputs", "duration"}
	imageFlags = []string{"size", "layout", "color", "scale", "mean", "std", "fit", "classes"}
	fromFlags  = append([]string{"label"}, imageFlags...)
)

// Define adds the flags to a command.
func (f *Flags) Define(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.To, "to", "", "folder for the cases, new or empty")
	flags.BoolVar(&f.Add, "append", false, "add to the cases that are in the folder")
	flags.StringVarP(&f.File, "file", "f", "", "spec of the model (default mlpromote.yaml, with --from)")
	flags.IntVar(&f.Count, "count", 0, "cases, a random sample (default 1000 with --proxy, all with --from)")
	flags.Uint64Var(&f.Seed, "seed", 1, "the same seed takes the same sample of the same cases")
	flags.StringVar(&f.MaxBytes, "max-bytes", "1GiB", "size of all cases; with --proxy they are in memory until the end")

	flags.StringVar(&f.proxy, "proxy", "", "URL of the service to forward requests to")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8001", "address for the clients of the service; port 0 takes a free one")
	flags.StringVar(&f.model, "model", "", "model of the recorded requests (default the first that the service answers for)")
	flags.Float64Var(&f.share, "sample", 1, "share of the requests that are read")
	flags.StringArrayVar(&f.inputs, "input", nil, "record only this input; may be repeated (default all)")
	flags.BoolVar(&f.outputs, "outputs", false, "record also the outputs of the service")
	flags.DurationVar(&f.duration, "duration", 0, "stop after this time (default when it is interrupted)")

	flags.StringVar(&f.from, "from", "", "file of cases (.npz, .csv, .parquet, .safetensors), or folder of images")
	flags.StringVar(&f.label, "label", "", "array or column that has the labels (default label or labels, if it is there)")
	flags.StringVar(&f.size, "size", "", "size of images, such as 224x224 (default the model's)")
	flags.StringVar(&f.layout, "layout", "", "NCHW or NHWC (default from the model's shape)")
	flags.StringVar(&f.color, "color", "", "rgb, bgr or gray (default rgb for three channels, gray for one)")
	flags.StringVar(&f.scale, "scale", "", "what pixels from 0 to 255 are multiplied with, such as 1/255 or 1")
	flags.Float64SliceVar(&f.mean, "mean", nil, "subtracted after that: one number, or one for each channel")
	flags.Float64SliceVar(&f.std, "std", nil, "divides after that: one number, or one for each channel")
	flags.StringVar(&f.fit, "fit", "", "for images of another size: crop, crop:N (shorter side N first), stretch or pad")
	flags.StringVar(&f.classes, "classes", "", "file with the classes in the model's order, one on a line (default subfolders by name)")
}

// OfSpec gives the inputs of the model of a spec.
type OfSpec func(ctx context.Context, file string) (validators.Interface, error)

// checkFile refuses a file that cannot be imported whatever the model is, before the model is read, which can install a
// toolchain.
func (f *Flags) checkFile() error {
	if info, err := os.Stat(f.from); f.from == "" || err == nil && info.IsDir() || len(f.ofImages) > 0 {
		return nil
	} else if err != nil {
		return registry.Errorf(registry.CodeInvalid, "--from: %w", err)
	}
	return cases.Import{File: f.from, Label: f.label, To: f.To, Add: f.Add}.Check()
}

// anySize lets open dimensions have any size, where no spec bounds them.
func anySize(iface *validators.Interface) *validators.Interface {
	if iface == nil || iface.Dims != nil {
		return iface
	}
	out := *iface
	out.Dims = make(map[string]validators.DimRange)
	for _, symbol := range out.Symbols() {
		out.Dims[symbol] = validators.DimRange{Min: 1, Opt: 1, Max: math.MaxInt32}
	}
	return &out
}

// check refuses flags that do not go together.
func (f *Flags) check(c *cobra.Command, model string) error {
	usage := func(text string) error { return command.Usage(c, registry.Errorf(registry.CodeInvalid, "%s", text)) }
	switch {
	case (f.proxy == "") == (f.from == ""):
		return usage("want either --proxy URL or --from FILE")
	case model != "" && f.File != "":
		return usage("want MODEL.onnx or --file, not both")
	case f.Count < 0 || c.Flags().Changed("count") && f.Count == 0:
		return usage("--count: want at least 1")
	case f.duration < 0:
		return usage("--duration: want a time above 0")
	case !(f.share > 0 && f.share <= 1):
		return usage("--sample: want a share above 0, and at most 1")
	}
	others, kind := proxyFlags, "--proxy"
	if f.proxy != "" {
		others, kind = fromFlags, "--from"
	}
	for _, name := range others {
		if c.Flags().Changed(name) {
			return usage("--" + name + " is for " + kind)
		}
	}
	for _, name := range append([]string{"count"}, imageFlags...) {
		if c.Flags().Changed(name) {
			f.ofImages = append(f.ofImages, name)
		}
	}
	return nil
}

// inputsOf gives the inputs of the model that was named, or nil.
func (f *Flags) inputsOf(ctx context.Context, model string, inputs OfSpec) (*validators.Interface, error) {
	var iface validators.Interface
	var err error
	switch {
	case model != "":
		iface, err = draft.InputsOfModel(model)
	case f.File != "":
		iface, err = inputs(ctx, f.File)
	default:
		return nil, nil
	}
	return &iface, err
}

// unknownInput names an input of --input that the model does not have.
func unknownInput(iface *validators.Interface, inputs []string) error {
	if iface == nil {
		return nil
	}
	var names []string
	for _, input := range iface.Inputs {
		names = append(names, input.Name)
	}
	for _, name := range inputs {
		if !slices.Contains(names, name) {
			return registry.Errorf(registry.CodeInvalid, "--input %s: the model has %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// Notes says what an import changed on the way.
func Notes(u *ui.UI, imported Imported) {
	for _, note := range imported.Notes {
		if text, ok := strings.CutPrefix(note, "warning: "); ok {
			u.Warn(text)
			continue
		}
		u.Note("%s", note)
	}
}
