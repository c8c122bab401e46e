// Package images makes cases of a folder of PNG and JPEG files: it decodes, scales and normalizes them as
// configured, and takes the names of subfolders for classes. It guesses nothing that changes a value.
//
// Files come from elsewhere, so their size in pixels is checked before they are decoded. The same files and
// options give the same bytes on every machine.
package images

import (
	"mlpromote.dev/mlpromote/validators"
)

// How an image of another size than the model's is made to fit.
const (
	FitCrop    = "crop"    // scale until it covers the size, and cut the middle out
	FitStretch = "stretch" // scale each side by itself
	FitPad     = "pad"     // scale until it is inside of the size, and put black around it
)

// Orders of the dimensions of an image.
const (
	NCHW = "NCHW"
	NHWC = "NHWC"
)

// The channels of an image.
const (
	RGB  = "rgb"
	BGR  = "bgr"
	Gray = "gray"
)

// Bounds of an image file.
const (
	maxFileBytes = 64 << 20
	maxPixels    = 40_000_000 // what a camera makes; decoding takes some 12 bytes for each
	maxSide      = 1 << 14    // of what is made for the model
	maxFiles     = 1 << 20
)

// Options configure the conversion of images. The value of a channel from 0 to 255 becomes
// (value * Scale - Mean) / Std, in the type of the input.
type Options struct {
	Inputs        validators.Interface // of the model, which has one input
	Width, Height int                  // 0 takes what the input says
	Layout        string               // NCHW or NHWC; empty takes what the input says
	Color         string               // RGB, BGR or Gray; empty is RGB for three channels and Gray for one
	Fit           string               // empty refuses images of another size
	Shorter       int                  // of FitCrop: the size of the shorter side; 0 just covers the size
	Scale         Scale                // needed for floats
	Mean, Std     []float64            // one for each channel, or one for all; none is 0 and 1
	Classes       []string             // the classes in the order of the model; nil sorts the names of the subfolders
	Label         string               // name of the tensor of labels
	Count         int                  // a sample of so many images; 0 takes all
	Seed          uint64               // of the sample
	MaxBytes      int64                // of all that is made
}

// Scale is a fraction that values are multiplied with, kept as written so that 1/255 divides by 255.
// The zero Scale is none.
type Scale struct{ Numerator, Denominator float64 }

// LeftOut is a file that was not made a case.
type LeftOut struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// Made is the result of reading a folder of images.
type Made struct {
	Count   int
	Labels  string    // the tensor with the labels; empty without subfolders
	Classes []string  // by number; nil without subfolders
	LeftOut []LeftOut // by name
	Passed  int       // images that the sample does not have
}
