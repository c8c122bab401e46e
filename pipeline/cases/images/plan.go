package images

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// recipe is what is made of each image, with nothing left open.
type recipe struct {
	input         string
	dtype         tensor.DType
	width, height int
	channels      int
	last          bool // the channels are the last dimension
	flat          bool // the input has no dimension for channels
	color         string
	fit           string
	shorter       int
	scale         Scale
	mean, std     []float64 // one for each channel
}

// recipe completes options by the input of the model. Errors: CodeInvalid for what neither says.
func (o Options) recipe() (recipe, error) {
	if len(o.Inputs.Inputs) != 1 {
		return recipe{}, registry.Errorf(registry.CodeInvalid, "the model has %d inputs: images are for a model with one", len(o.Inputs.Inputs))
	}
	input := o.Inputs.Inputs[0]
	r := recipe{input: input.Name, dtype: input.DType, fit: o.Fit, shorter: o.Shorter, scale: o.Scale}
	dims := input.Shape
	if len(dims) > 0 && o.Inputs.Allows(dims[0], 1) && len(dims) > 2 {
		dims = dims[1:]
	}
	if err := r.layout(o, input, dims); err != nil {
		return recipe{}, err
	}
	if err := r.colors(o); err != nil {
		return recipe{}, err
	}
	if err := r.values(o); err != nil {
		return recipe{}, err
	}
	return r, r.fits(o)
}

// layout finds out which dimensions are channels, height and width, and their sizes.
func (r *recipe) layout(o Options, input validators.TensorInfo, dims []validators.Dim) error {
	var channels, height, width validators.Dim
	switch {
	case len(dims) == 2:
		r.flat = true
		channels, height, width = validators.Dim{Size: 1}, dims[0], dims[1]
	case len(dims) != 3:
		return registry.Errorf(registry.CodeInvalid,
			"input %q has the shape %v: want an image, with a height, a width and channels", input.Name, input.Shape)
	default:
		first, last := isChannels(dims[0]), isChannels(dims[2])
		switch {
		case o.Layout == NHWC || o.Layout == "" && last && !first:
			r.last = true
			channels, height, width = dims[2], dims[0], dims[1]
		case o.Layout == NCHW || first && !last:
			channels, height, width = dims[0], dims[1], dims[2]
		default:
			return registry.Errorf(registry.CodeInvalid,
				"input %q has the shape %v, which does not show the place of its channels: want --layout NCHW or NHWC", input.Name, input.Shape)
		}
	}
	switch {
	case channels.Size != 0:
		r.channels = int(channels.Size)
	case o.Color == Gray:
		r.channels = 1
	default:
		r.channels = 3
	}
	var err error
	if r.height, err = side("height", height, o.Height, o.Inputs); err == nil {
		r.width, err = side("width", width, o.Width, o.Inputs)
	}
	return err
}

func isChannels(d validators.Dim) bool { return d.Size == 1 || d.Size == 3 }

func side(what string, dim validators.Dim, asked int, iface validators.Interface) (int, error) {
	switch {
	case asked == 0 && dim.Symbol != "":
		return 0, registry.Errorf(registry.CodeInvalid, "the model leaves the %s of its images open: want --size WIDTHxHEIGHT", what)
	case asked == 0:
		asked = int(min(dim.Size, maxSide+1))
	case dim.Symbol == "" && dim.Size != int64(asked), dim.Symbol != "" && !iface.Allows(dim, int64(asked)):
		return 0, registry.Errorf(registry.CodeInvalid, "--size: the %s is %d, the model wants %s", what, asked, dim)
	}
	if asked < 1 || asked > maxSide {
		return 0, registry.Errorf(registry.CodeInvalid, "the %s of images is %d: want 1 to %d", what, asked, maxSide)
	}
	return asked, nil
}

func (r *recipe) colors(o Options) error {
	r.color = o.Color
	if r.color == "" {
		r.color = map[int]string{1: Gray, 3: RGB}[r.channels]
	}
	if want := map[string]int{RGB: 3, BGR: 3, Gray: 1}[r.color]; want != r.channels {
		return registry.Errorf(registry.CodeInvalid,
			"the model takes images of %s: want 3, for --color rgb or bgr, or 1, for gray", registry.Count(r.channels, "channel"))
	}
	return nil
}

// values checks how numbers are made of bytes.
func (r *recipe) values(o Options) error {
	switch r.dtype {
	case tensor.Uint8:
		if o.Scale != (Scale{}) && o.Scale != (Scale{1, 1}) || len(o.Mean)+len(o.Std) > 0 {
			return registry.Errorf(registry.CodeInvalid, "input %q is uint8, so it takes the bytes as they are: leave out --scale, --mean and --std", r.input)
		}
		return nil
	case tensor.Float32, tensor.Float64:
	default:
		return registry.Errorf(registry.CodeInvalid,
			"input %q is %s: images are made for float32, float64 and uint8; convert yours to .npz by the program that trains the model", r.input, r.dtype)
	}
	if r.scale == (Scale{}) {
		return registry.Errorf(registry.CodeInvalid,
			"input %q is %s: want --scale 1/255 for values from 0 to 1, or --scale 1 for 0 to 255, as the model was trained", r.input, r.dtype)
	}
	var err error
	if r.mean, err = perChannel("--mean", o.Mean, 0, r.channels); err != nil {
		return err
	}
	if r.std, err = perChannel("--std", o.Std, 1, r.channels); err != nil {
		return err
	}
	for _, v := range r.std {
		if v == 0 {
			return registry.Errorf(registry.CodeInvalid, "--std: 0 divides nothing")
		}
	}
	return nil
}

func perChannel(flag string, given []float64, none float64, channels int) ([]float64, error) {
	switch len(given) {
	case 0:
		given = []float64{none}
		fallthrough
	case 1:
		out := make([]float64, channels)
		for i := range out {
			out[i] = given[0]
		}
		return out, nil
	case channels:
		return given, nil
	}
	return nil, registry.Errorf(registry.CodeInvalid, "%s has %d numbers: want one, or one for each of %d channels", flag, len(given), channels)
}

func (r *recipe) fits(o Options) error {
	switch r.fit {
	case "", FitCrop, FitStretch, FitPad:
	default:
		return registry.Errorf(registry.CodeInvalid, "--fit %q: want crop, crop:N, stretch or pad", r.fit)
	}
	if o.Shorter != 0 && (o.Fit != FitCrop || o.Shorter < max(r.width, r.height) || o.Shorter > maxSide) {
		return registry.Errorf(registry.CodeInvalid,
			"--fit crop:%d: want at least the %d of the larger side of the model's images, and at most %d", o.Shorter, max(r.width, r.height), maxSide)
	}
	return nil
}

// shape is that of one case, with a leading dimension of 1.
func (r recipe) shape() []int64 {
	h, w, c := int64(r.height), int64(r.width), int64(r.channels)
	switch {
	case r.flat:
		return []int64{1, h, w}
	case r.last:
		return []int64{1, h, w, c}
	}
	return []int64{1, c, h, w}
}

func (r recipe) bytes() int64 {
	return int64(r.height) * int64(r.width) * int64(r.channels) * int64(r.dtype.Size())
}

// String describes the conversion of each image.
func (r recipe) String() string {
	layout := NCHW
	if r.last {
		layout = NHWC
	}
	text := fmt.Sprintf("%s %s %dx%d %s", layout, r.color, r.width, r.height, r.dtype)
	if r.dtype.Class() == tensor.ClassFloat {
		text += ", scale " + r.scale.String()
	}
	return text
}

// ParseScale reads a number or a fraction, such as 1/255. Errors: CodeInvalid.
func ParseScale(text string) (Scale, error) {
	numerator, denominator, ok := strings.Cut(text, "/")
	if !ok {
		denominator = "1"
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(numerator), 64)
	d, other := strconv.ParseFloat(strings.TrimSpace(denominator), 64)
	if err != nil || other != nil || !(math.Abs(n) > 0 && math.Abs(n) < math.MaxFloat32 && math.Abs(d) > 0 && math.Abs(d) < math.MaxFloat32) {
		return Scale{}, registry.Errorf(registry.CodeInvalid, "--scale %q: want a number other than 0, or a fraction such as 1/255", text)
	}
	return Scale{n, d}, nil
}

// String writes the scale as [ParseScale] reads it.
func (s Scale) String() string {
	if s.Denominator == 1 {
		return strconv.FormatFloat(s.Numerator, 'g', -1, 64)
	}
	return strconv.FormatFloat(s.Numerator, 'g', -1, 64) + "/" + strconv.FormatFloat(s.Denominator, 'g', -1, 64)
}
