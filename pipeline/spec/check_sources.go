package spec

import (
	"cmp"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

func (c checker) checkSources() {
	c.exists(c.Source.Path, InFolder(c.Source.Format), "source", "path")
	c.checkFormat()
	if c.Calibration != nil {
		c.existsFolder(c.Calibration.Path, "calibration", "path")
	}
	names := make(map[string]int)
	for i, asset := range c.Assets {
		c.exists(asset, false, "assets", i)
		name := path.Base(asset.Written)
		if first, ok := names[name]; ok {
			c.problem(at("assets", i), "asset %q has the file name of asset %q: want names that differ, since an engine holds all in one folder",
				asset.Written, c.Assets[first].Written)
		}
		names[name] = i
	}
	for _, symbol := range slices.Sorted(maps.Keys(c.Shapes)) {
		c.report(validators.DimRange(c.Shapes[symbol]).Validate(), "shapes", symbol)
	}
}

// checkFormat checks that every key of the source applies to its format. Whether a pickle is
// trusted is checked elsewhere.
func (c checker) checkFormat() {
	s := c.Source
	c.oneOf(at("source", "format"), "source format", s.Format, Formats(),
		[]string{"pytorch", "tensorflow"})
	c.checkArchitecture()
	c.checkInputs()
	c.checkOrigin()
	if s.Simplify && s.Format != FormatONNX {
		c.problem(at("source", "simplify"), "simplify is for format %s: remove the key", FormatONNX)
	}
	if len(s.Operators) > 0 && s.Format != FormatONNX {
		c.problem(at("source", "operators"), "operators are for format %s: remove the key", FormatONNX)
	}
	names := make(map[string]bool)
	for i, p := range s.Operators {
		c.exists(p, false, "source", "operators", i)
		if name := path.Base(p.Written); names[name] {
			c.problem(at("source", "operators", i),
				"two libraries are called %q: want names that differ, since an engine holds all in one folder", name)
		} else {
			names[name] = true
		}
	}
	if len(s.Trust.Types) > 0 && s.Format != FormatSkops {
		c.problem(at("source", "trust", "types"), "types are trusted in format %s: remove the key", FormatSkops)
	}
	if pickles := []string{FormatPickle, FormatTorchExport, FormatTorchScript}; s.Trust.Pickle && !slices.Contains(pickles, s.Format) {
		c.problem(at("source", "trust", "pickle"), "trust in pickles is for formats %s: remove the key", strings.Join(pickles, ", "))
	}
}

// checkOrigin checks the form of an origin. The digest is compared when the source is read.
func (c checker) checkOrigin() {
	o := c.Source.Origin
	if o == nil {
		return
	}
	if d := registry.Digest(o.Digest); registry.ValidDigest(d) != nil || d.Algorithm() != "sha256" {
		c.problem(at("source", "origin", "digest"), "digest %q: want sha256:HEX", o.Digest)
	}
	if !isOriginURI(o.URI) {
		c.problem(at("source", "origin", "uri"), "uri %q: want mlflow:models:/NAME/VERSION or mlflow:runs:/RUN/PATH, as init writes it", o.URI)
	}
	if u, err := url.Parse(o.Server); err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" || registry.ValidateText("server", o.Server) != nil {
		c.problem(at("source", "origin", "server"), "server %q: want http://HOST or https://HOST, without a user or password", registry.RedactURL(o.Server))
	}
	c.report(registry.ValidateText("run", o.Run), "source", "origin", "run")
}

// maxOriginURI bounds the part of an address behind its kind, in bytes.
const maxOriginURI = 400

// isOriginURI reports whether a text is the address of a model on a server. A pattern with a counted class of Unicode would take 16 MB
// when each process starts.
func isOriginURI(text string) bool {
	rest, ok := strings.CutPrefix(text, "mlflow:models:/")
	if !ok {
		rest, ok = strings.CutPrefix(text, "mlflow:runs:/")
	}
	return ok && rest != "" && rest[0] != '/' && len(rest) <= maxOriginURI && utf8.ValidString(rest) &&
		!strings.ContainsFunc(rest, func(r rune) bool { return unicode.Is(unicode.C, r) })
}

// checkArchitecture checks that weights, and nothing else, have an architecture. Whether it
// fits them is for the importer to find out.
func (c checker) checkArchitecture() {
	a := c.Source.Architecture
	switch {
	case a == nil && c.Source.Format == FormatSafetensors:
		c.problem(at("source"),
			"a safetensors file holds weights and no network: want architecture: {kind: mlp, input: [SIZE], layers: [NAME, relu, NAME]}")
	case a == nil:
	case c.Source.Format != FormatSafetensors:
		c.problem(at("source", "architecture"), "an architecture is for format %s: remove the key", FormatSafetensors)
	default:
		dims := map[string]int{ArchitectureMLP: 1, ArchitectureCNN: 3, ArchitectureEncoder: 1}
		if !c.oneOf(at("source", "architecture", "kind"),
			"architecture", a.Kind, []string{ArchitectureMLP, ArchitectureCNN, ArchitectureEncoder}, []string{"resnet"}) {
			return
		}
		if len(a.Input) != dims[a.Kind] || slices.ContainsFunc(a.Input, func(n int64) bool { return n < 1 }) {
			c.problem(at("source", "architecture", "input"), "input %v: want %d sizes of at least 1", a.Input, dims[a.Kind])
		}
		if encoder := a.Kind == ArchitectureEncoder; encoder != (a.Heads > 0) || !encoder && a.Norm != "" {
			c.problem(at("source", "architecture", "heads"),
				"heads %d, norm %q: an encoder has at least one head of attention, and no other network has heads or norm", a.Heads, a.Norm)
		}
		if len(a.Layers) == 0 {
			c.problem(at("source", "architecture", "layers"), "layers is empty: want words and names of weights, in order")
		}
	}
}

const (
	maxSourceInputs = 64
	maxSourceDims   = 8
)

// inputName is how an input of an imported model may be called.
var inputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]{0,63}$`)

// checkInputs checks that a TorchScript module, and nothing else, has inputs that the spec describes.
func (c checker) checkInputs() {
	s := c.Source
	switch {
	case s.Format != FormatTorchScript && len(s.Inputs) > 0:
		c.problem(at("source", "inputs"), "inputs are for format %s, other files say what theirs are: remove the key", FormatTorchScript)
		return
	case s.Format == FormatTorchScript && len(s.Inputs) == 0:
		c.problem(at("source"), "TorchScript does not say what its inputs are: want inputs: [{name: x, dtype: float32, shape: [batch, 3, 224, 224]}]")
		return
	case len(s.Inputs) > maxSourceInputs:
		c.problem(at("source", "inputs"), "%d inputs: want at most %d", len(s.Inputs), maxSourceInputs)
		return
	}
	names := make(map[string]bool)
	for i, in := range s.Inputs {
		switch {
		case !inputName.MatchString(in.Name):
			c.problem(at("source", "inputs", i, "name"), "input name %.40q: want letters, digits, '_' and '.', at most 64", in.Name)
		case names[in.Name]:
			c.problem(at("source", "inputs", i, "name"), "two inputs are called %q: want names that differ", in.Name)
		}
		names[in.Name] = true
		c.oneOf(at("source", "inputs", i, "dtype"), "dtype", cmp.Or(in.DType, "float32"), sourceDTypes, nil)
		if len(in.Shape) > maxSourceDims {
			c.problem(at("source", "inputs", i, "shape"), "%d dimensions: want at most %d", len(in.Shape), maxSourceDims)
		}
	}
}

var sourceDTypes = []string{"float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool"}

// maxGenerated is how many cases are generated at most.
const maxGenerated = 100_000

func (c checker) checkCases() {
	recorded, generated := c.Cases.Path.Written != "", c.Cases.Generate != 0 || c.Cases.Seed != 0
	switch {
	case recorded && generated:
		c.problem(at("cases"), "cases has both path and generate: want recorded cases or generated ones")
	case !recorded && (c.Cases.Generate < 1 || c.Cases.Generate > maxGenerated):
		c.problem(at("cases", "generate"),
			"cases are missing: want a folder, or {generate: N, seed: S} with N from 1 to %d", maxGenerated)
	case !recorded && c.Cases.Labels != "":
		c.problem(at("cases", "labels"), "generated cases have no labels: remove the key, or record cases")
	}
	if recorded && len(c.Cases.Inputs) > 0 {
		c.problem(at("cases", "inputs"), "recorded cases have values already: remove the key")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Cases.Inputs)) {
		c.checkDraw(at("cases", "inputs", name), c.Cases.Inputs[name])
	}
	c.existsFolder(c.Cases.Path, "cases", "path")
}

// checkDraw checks what the values of a generated input are drawn from.
func (c checker) checkDraw(place []any, d Draw) {
	bounded := d.Min != nil && d.Max != nil
	switch {
	case (d.Min != nil) != (d.Max != nil), bounded == (len(d.Values) > 0):
		c.problem(place, "want min and max, or values")
	case bounded && *d.Min > *d.Max:
		c.problem(place, "min %v is above max %v", *d.Min, *d.Max)
	}
}

// existsFolder checks that a path leads to a folder of cases.
func (c checker) existsFolder(p Path, place ...any) {
	switch strings.ToLower(path.Ext(p.Written)) {
	case ".npz", ".safetensors":
		if c.Files.Check(p.Written, false) == nil {
			c.problem(place, "%s: want the folder that it is in: all .npz and .safetensors files of a folder are read",
				p.Written)
			return
		}
	case CSV, Parquet:
		if c.Files.Check(p.Written, false) == nil {
			c.problem(place, "%s: want a folder of .npz or .safetensors files: %s", p.Written, FromTable(p.Written))
			return
		}
	}
	c.exists(p, true, place...)
}
