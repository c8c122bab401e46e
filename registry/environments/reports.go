package environments

import (
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// reports are how fresh reports must be, and of how many verifiers.
type reports struct {
	MaxAge    age  `yaml:"max-age"`
	Verifiers *int `yaml:"verifiers"`
}

func (r reports) rule() registry.ReportRule {
	rule := registry.ReportRule{MaxAge: time.Duration(r.MaxAge)}
	if r.Verifiers != nil {
		rule.Verifiers = *r.Verifiers
	}
	return rule
}

// age is a number of days, such as 90d, or a duration as Go writes it, such as 36h.
type age time.Duration

// DecodeYAML reads either form.
func (a *age) DecodeYAML(n *strictyaml.Node) {
	text := n.Text()
	d, err := time.ParseDuration(text)
	if days, found := strings.CutSuffix(text, "d"); found {
		var count int
		count, err = strconv.Atoi(days)
		if count > 36500 {
			err = strconv.ErrRange
		}
		d = time.Duration(count) * 24 * time.Hour
	}
	if n.Kind() != strictyaml.Scalar || err != nil || d <= 0 {
		n.Problemf("want how old a report may be, such as 90d or 36h")
		return
	}
	*a = age(d)
}
