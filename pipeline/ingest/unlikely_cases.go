package ingest

import (
	"fmt"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// warnUnlikely adds warnings about recorded inputs that are like none in use: images of noise, and
// sequences of one element. what is cases or calibration.
func warnUnlikely(what string, set *cases.Set, iface validators.Interface, uses map[string]onnx.Use) error {
	if set.Record.Origin == artifact.OriginGenerated {
		return nil // which is said already
	}
	for _, input := range iface.Inputs {
		use := uses[input.Name]
		var found bool
		var err error
		text := "all sequences have one element, which says nothing about longer ones"
		switch {
		case use.Image:
			found, err = set.IsNoise(input.Name, !isChannels(input.Shape[1]))
			text = "neighbouring pixels have nothing in common, as in noise: images in use have other values and ranges"
		case use.Rows > 0:
			found, err = set.Single(input.Name, len(input.Shape), openAxes(input))
		}
		if err != nil {
			return err
		}
		if found {
			set.Warnings = append(set.Warnings,
				fmt.Sprintf("%s: input %q: %s; record inputs where the model is used (docs/how-to/cases.md)", what, input.Name, text))
		}
	}
	return nil
}

// warnUnlike adds a warning about calibration data with other values than the cases: int8 would take ranges from them that nothing in use has.
func (in *Inputs) warnUnlike() error {
	if in.Calibration.Record.Origin == artifact.OriginGenerated || in.Cases.Record.Origin == artifact.OriginGenerated {
		return nil // which is said already
	}
	var of, ran []string
	for _, file := range in.Calibration.Files {
		of = append(of, file.Path)
	}
	for _, file := range in.Cases.Engines() {
		ran = append(ran, file.Path)
	}
	unlike, err := cases.Unlike(of, ran, in.Interface)
	if unlike != "" {
		in.Calibration.Warnings = append(in.Calibration.Warnings, "calibration: "+unlike+": prepare both in the same way, or int8 takes its ranges from values that no case has")
	}
	return err
}

// isChannels reports whether a dimension is that of the channels of an image.
func isChannels(d validators.Dim) bool { return d.Size == 1 || d.Size == 3 || d.Size == 4 }

// openAxes are the dimensions behind the batch that have no fixed size.
func openAxes(input validators.TensorInfo) []int {
	var open []int
	for axis, d := range input.Shape {
		if axis > 0 && d.Symbol != "" {
			open = append(open, axis)
		}
	}
	return open
}
