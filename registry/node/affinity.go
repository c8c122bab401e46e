package node

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Expression is a requirement on one label, as matchExpressions of a Kubernetes node affinity has it.
type Expression struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// The operators of expressions.
const (
	opIn           = "In"
	opNotIn        = "NotIn"
	opExists       = "Exists"
	opDoesNotExist = "DoesNotExist"
	opGt           = "Gt"
	opLt           = "Lt"
)

// Affinity selects Kubernetes nodes by their labels.
type Affinity struct {
	Terms       [][]Expression      `json:"terms"`                 // a node must meet every expression of one of them
	Unexpressed []artifact.Mismatch `json:"unexpressed,omitempty"` // requirements that no label expresses
}

// AffinityOf returns the affinity that selects the nodes that meet a target, by the labels that [FromLabels] reads: of
// Node feature discovery 0.19 and later and of NVIDIA's GPU feature discovery. It selects no node that lacks a
// requirement, but for the unexpressed ones. withDevices is false for pods that ask for their devices in another way.
// Errors: CodeInvalid for a target that no machine meets.
func AffinityOf(t artifact.Target, withDevices bool) (Affinity, error) {
	if err := usable(t); err != nil {
		return Affinity{}, err
	}
	var a Affinity
	common := []Expression{{labelOS, opIn, []string{t.OS}}, {labelArch, opIn, []string{t.CPU.Arch}}}
	var implied []string // features that the level requires
	for _, level := range levels() {
		if level.name <= t.CPU.Level {
			implied = append(implied, level.features...)
		}
		if level.name == t.CPU.Level {
			common = append(common, isTrue(levelFlag(level.name)))
		}
	}
	for _, name := range t.CPU.Features {
		if slices.Contains(implied, name) {
			continue
		}
		flag, ok := featureFlag(t.CPU.Arch, name)
		if !ok {
			a.Unexpressed = append(a.Unexpressed, artifact.Mismatch{Requirement: "cpu.features", Need: name})
			continue
		}
		if e := isTrue(flag); !slices.ContainsFunc(common, e.equal) {
			common = append(common, e)
		}
	}
	a.Terms = [][]Expression{common}
	if t.Accelerator != nil && withDevices {
		a.addDevices(t)
	}
	for _, name := range registry.SortedKeys(t.Runtimes) {
		a.Unexpressed = append(a.Unexpressed, artifact.Mismatch{Requirement: "runtimes." + name, Need: t.Runtimes[name].String(), Runtime: name})
	}
	return a, nil
}

// usable refuses a target that matches no node, because it is invalid or has parts that this program does not know.
func usable(t artifact.Target) error {
	if missing := t.Match(artifact.Node{}, artifact.Runtime{}); len(missing) > 0 && missing[0].Requirement == "target" {
		return registry.Errorf(registry.CodeInvalid, "target %s: %s", t.Name, missing[0].Need)
	}
	return t.Validate()
}

func (e Expression) equal(other Expression) bool {
	return e.Key == other.Key && e.Operator == other.Operator && slices.Equal(e.Values, other.Values)
}

func isTrue(flag string) Expression { return Expression{labelCPUID + flag, opIn, []string{"true"}} }

// featureFlag returns the flag in the label of a processor feature. For the features without a label of their own it is
// the flag of the level that requires them. It returns false for features that are not on our list.
func featureFlag(arch, name string) (string, bool) {
	// Node feature discovery leaves these out by default (source/cpu/cpu.go, attributeBlacklist).
	hidden := []string{"f16c", "sse4_1", "sse4_2"}
	for _, level := range levels() {
		if arch == "amd64" && slices.Contains(hidden, name) && slices.Contains(level.features, name) {
			return levelFlag(level.name), true
		}
	}
	for _, f := range features() {
		switch {
		case f.name != name:
		case arch == "amd64":
			return f.id.String(), true
		default:
			return strings.ToUpper(f.name), true
		}
	}
	return "", false
}

// addDevices adds the requirements on accelerators.
func (a *Affinity) addDevices(t artifact.Target) {
	if t.Accelerator.Vendor != "nvidia" || t.Accelerator.MIG != "" && !labelValue.MatchString(t.Accelerator.MIG) {
		a.Unexpressed = append(a.Unexpressed, artifact.Mismatch{Requirement: "accelerator", Need: t.Accelerator.String()})
		return
	}
	alternatives := a.places(t)
	arch, ok := archAlternatives(*t.Accelerator, t.Compatibility)
	if !ok {
		a.Unexpressed = append(a.Unexpressed, artifact.Mismatch{Requirement: "accelerator.arch", Need: t.Accelerator.Arch})
	}
	driver, ok := driverAlternatives(t.Accelerator.Driver)
	if !ok {
		a.Unexpressed = append(a.Unexpressed, artifact.Mismatch{Requirement: "accelerator.driver", Need: t.Accelerator.Driver.String()})
	}
	for _, choice := range [][][]Expression{alternatives, arch, driver} {
		a.Terms = product(a.Terms, choice)
	}
}

// product returns every term with every alternative added.
func product(terms, alternatives [][]Expression) [][]Expression {
	var all [][]Expression
	for _, term := range terms {
		for _, more := range alternatives {
			all = append(all, slices.Concat(term, more))
		}
	}
	return all
}

var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)

// places returns the alternatives of labels that have the devices of a target: which, how many, and of how much memory.
// There are two for MIG instances, because the strategies single and mixed label them differently.
func (a *Affinity) places(t artifact.Target) [][]Expression {
	mixed := Expression{"nvidia.com/mig.strategy", opIn, []string{"mixed"}}
	notMixed := Expression{mixed.Key, opNotIn, mixed.Values}
	products := func(suffix string) (Expression, bool) {
		e := Expression{Key: labelGPU + "product", Operator: opIn}
		if t.Accelerator.Product == "" || t.Compatibility != "" && t.Compatibility != artifact.CompatibilityExact {
			return Expression{Key: e.Key, Operator: opExists}, false
		}
		for _, name := range []string{t.Accelerator.Product + suffix, t.Accelerator.Product + suffix + sharedSuffix} {
			if labelValue.MatchString(name) {
				e.Values = append(e.Values, name)
			}
		}
		if e.Values == nil {
			a.Unexpressed = append(a.Unexpressed, artifact.Mismatch{Requirement: "accelerator.product", Need: t.Accelerator.Product})
			return Expression{Key: e.Key, Operator: opExists}, false
		}
		return e, true
	}
	amount := func(prefix string) []Expression {
		all := []Expression{above(prefix+"count", max(t.Accelerator.Count, 1)-1)}
		if t.Accelerator.MemoryMiB > 0 { // the memory of a share is not known
			all = append(all, above(prefix+"memory", int(t.Accelerator.MemoryMiB)-1), below(prefix+"replicas", 2))
		}
		return all
	}
	if t.Accelerator.MIG == "" {
		e, named := products("")
		place := []Expression{e, notMixed}
		if !named { // a product with a profile in its name is not a whole device
			place = append(place, Expression{Key: labelGPU + "slices.gi", Operator: opDoesNotExist})
		}
		return [][]Expression{append(place, amount(labelGPU)...)}
	}
	whole, _ := products("")
	places := [][]Expression{append([]Expression{whole, mixed}, amount(labelMIG+t.Accelerator.MIG+".")...)}
	if single, named := products("-MIG-" + t.Accelerator.MIG); named {
		places = append(places, append([]Expression{single, notMixed}, amount(labelGPU)...))
	}
	return places
}

// above requires a number greater than n, and below one less than n.
func above(key string, n int) Expression { return Expression{key, opGt, []string{strconv.Itoa(n)}} }

func below(key string, n int) Expression { return Expression{key, opLt, []string{strconv.Itoa(n)}} }

// archAlternatives returns the alternatives for the compute capability. It returns false if no label has such an
// architecture.
func archAlternatives(a artifact.TargetAccelerator, far artifact.Compatibility) ([][]Expression, bool) {
	none := [][]Expression{nil}
	if a.Arch == "" {
		return none, true
	}
	major, minor, ok := ComputeCapability(a.Arch)
	if !ok {
		return none, false
	}
	const keyMajor, keyMinor = labelGPU + "compute.major", labelGPU + "compute.minor"
	same := Expression{keyMajor, opIn, []string{strconv.Itoa(major)}}
	switch {
	case far != artifact.CompatibilityVersionCompatible:
		return [][]Expression{{same, {keyMinor, opIn, []string{strconv.Itoa(minor)}}}}, true
	case minor == 0:
		return [][]Expression{{above(keyMajor, major-1)}}, true
	}
	return [][]Expression{{above(keyMajor, major)}, {same, above(keyMinor, minor-1)}}, true
}

// ComputeCapability reads the numbers of an architecture of NVIDIA: sm_90 is 9 and 0. It returns false for other names.
func ComputeCapability(arch string) (major, minor int, ok bool) {
	text, found := strings.CutPrefix(arch, "sm_")
	n, err := strconv.Atoi(text)
	if !found || err != nil || n < 10 || n > 999 || fmt.Sprint(n) != text {
		return 0, 0, false
	}
	return n / 10, n % 10, true
}

// span is the numbers from low to high.
type span struct{ low, high int }

// endless is above every number in a version.
const endless = 1 << 40

func (s span) and(o span) span { return span{max(s.low, o.low), min(s.high, o.high)} }

// box is the versions whose major, minor and revision are in these spans.
type box [3]span

// driverAlternatives returns the alternatives for the version of the driver, number by number. It returns false if they
// cannot express the constraint.
func driverAlternatives(c *artifact.Constraint) ([][]Expression, bool) {
	if c == nil {
		return [][]Expression{nil}, true
	}
	from, to := [3]int{}, [3]int{endless}
	for _, bound := range []struct {
		version string
		to      *[3]int
	}{{c.Min, &from}, {c.Below, &to}, {c.Exact, &from}, {c.Exact, &to}} {
		if bound.version == "" {
			continue
		}
		numbers, exact := threeNumbers(bound.version)
		if !exact {
			return [][]Expression{nil}, false
		}
		if c.Exact != "" && bound.to == &to {
			numbers[2]++
		}
		*bound.to = numbers
	}
	var all [][]Expression
	for _, low := range atLeast(from) {
		for _, high := range lessThan(to) {
			all = append(all, low.and(high).expressions()...)
		}
	}
	return all, len(all) > 0
}

// threeNumbers reads a version of at most three numbers, which every label of a driver has. Later zeros change nothing.
func threeNumbers(version string) (out [3]int, ok bool) {
	for i, text := range strings.Split(version, ".") {
		n, err := strconv.Atoi(text)
		if err != nil || n >= endless || i > 2 && n != 0 {
			return out, false
		}
		if i <= 2 {
			out[i] = n
		}
	}
	return out, true
}

// atLeast is the versions from v on, in boxes that do not overlap.
func atLeast(v [3]int) []box {
	last := len(v) - 1 // of the numbers that are not 0
	for last > 0 && v[last] == 0 {
		last--
	}
	var boxes []box
	for i := range last + 1 {
		b := exactly(v, i)
		b[i] = span{v[i] + 1, endless}
		if i == last {
			b[i].low = v[i]
		}
		boxes = append(boxes, b)
	}
	return boxes
}

// lessThan is the versions below v, in boxes that do not overlap.
func lessThan(v [3]int) []box {
	var boxes []box
	for i := range v {
		if v[i] > 0 {
			b := exactly(v, i)
			b[i] = span{0, v[i] - 1}
			boxes = append(boxes, b)
		}
	}
	return boxes
}

// exactly is the versions that agree with v in the numbers before i.
func exactly(v [3]int, i int) box {
	b := box{{0, endless}, {0, endless}, {0, endless}}
	for j := range i {
		b[j] = span{v[j], v[j]}
	}
	return b
}

func (b box) and(o box) box { return box{b[0].and(o[0]), b[1].and(o[1]), b[2].and(o[2])} }

// expressions returns the alternatives of labels for the versions of a box; none if it is empty. The label of the
// revision is empty for a version of two numbers.
func (b box) expressions() [][]Expression {
	var all []Expression
	for i, name := range []string{"major", "minor", "revision"} {
		s, key := b[i], labelDriver+name
		if s.low > s.high {
			return nil
		}
		if s.low > 0 {
			all = append(all, above(key, s.low-1))
		}
		if s.high < endless-1 {
			all = append(all, below(key, s.high+1))
		}
	}
	if len(all) == 0 {
		return [][]Expression{{{Key: labelDriver + "major", Operator: opExists}}}
	}
	if b[2].low > 0 || b[2].high >= endless-1 {
		return [][]Expression{all}
	}
	short := append(slices.Clone(all[:len(all)-1]), Expression{labelDriver + "revision", opIn, []string{""}})
	return [][]Expression{all, short}
}
