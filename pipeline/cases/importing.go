package cases

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Imported is the result of importing a file of cases.
type Imported struct {
	Count  int    `json:"count"`
	Labels string `json:"labels,omitempty"` // the tensor with the labels; empty without any
	// Expected names the outputs that the cases have expected values of.
	Expected []string `json:"expected,omitempty"`
	Notes    []string `json:"-"` // changes on the way, for people
	// Interface is the model's, with the cases' sizes of open dimensions.
	Interface validators.Interface `json:"-"`
	Facts     LabelFacts           `json:"-"`
	Values    tensor.Tensor        `json:"-"` // the labels of all cases
}

// Right returns the figures of a metric if the reference model and an engine give the labels; nil if labels do not determine an output.
func (im Imported) Right(m accuracy.Metric) *accuracy.Figures {
	if m.Rate || m.Smooth || m.Needs == accuracy.NeedsProgram {
		return nil
	}
	counter := accuracy.NewCounter(m, false, 0)
	if counter.AddRight(im.Values) != nil {
		return nil
	}
	return counter.Figures()
}

// LabelFacts are facts about an output, from its labels; zero without labels.
type LabelFacts struct {
	Real    bool    // they are not all whole, so that they are no classes
	Each    int64   // numbers for each case
	Largest float64 // of all
	Binary  bool    // they are 0 and 1, and both
	Rare    Rare    // one of two labels is in few cases
	Skewed  bool    // they are above 0, and nine tenths of them span a factor of ten
}

// factsOf describes labels, which have cases in front.
func factsOf(labels tensor.Tensor) LabelFacts {
	values := labels.Float64s()
	none := !slices.ContainsFunc(values, func(v float64) bool { return v != 0 && v != 1 })
	largest := 0.0
	if len(values) > 0 {
		largest = slices.Max(values)
	}
	var rare Rare
	if int64(len(values)) == labels.Shape[0] {
		rare = rareOf(values)
	}
	return LabelFacts{
		Rare:    rare,
		Real:    labels.DType.Class() == tensor.ClassFloat,
		Each:    int64(len(values)) / max(labels.Shape[0], 1),
		Largest: largest,
		Binary:  none && slices.Contains(values, 0) && slices.Contains(values, 1),
		Skewed:  tensor.ManyMagnitudes(values),
	}
}

// importing makes a shard of what was found in a file.
type importing struct {
	Imported
	found map[string]tensor.Tensor
	texts map[string]bool                // of these, those that are text
	given map[string]validators.DimRange // the sizes that a spec or the model says; other dimensions get those of the cases
	alike []alikeNote
}

// alikeNote is a note about several inputs of which the same is to be noted, such as the columns of a table.
type alikeNote struct {
	did, how string
	names    []string
}

// open reports whether a dimension gets its sizes from the cases.
func (im *importing) open(dim validators.Dim) bool {
	_, given := im.given[dim.Symbol]
	return dim.Symbol != "" && !given
}

func (im *importing) note(format string, args ...any) {
	im.Notes = append(im.Notes, fmt.Sprintf(format, args...))
}

// noteOf notes what was done to an input, in one note for all of which the same is noted.
func (im *importing) noteOf(name, did, format string, args ...any) {
	how := fmt.Sprintf(format, args...)
	at := slices.IndexFunc(im.alike, func(n alikeNote) bool { return n.did == did && n.how == how })
	if at < 0 {
		at = len(im.alike)
		im.alike = append(im.alike, alikeNote{did: did, how: how})
	}
	im.alike[at].names = append(im.alike[at].names, strconv.Quote(name))
}

// namedAlike is how many inputs one note names.
const namedAlike = 10

// noteAlike writes the notes of [importing.noteOf].
func (im *importing) noteAlike() {
	for _, n := range im.alike {
		names := strings.Join(n.names[:min(namedAlike, len(n.names))], ", ")
		if more := len(n.names) - namedAlike; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		im.note("%s %s %s", n.did, names, n.how)
	}
	im.alike = nil
}
