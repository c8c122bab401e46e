package cistep

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// result is what a step prints and hands on.
type result struct {
	Verb    string            `json:"verb"`
	Exit    int               `json:"exit"`
	Outputs map[string]string `json:"outputs"`
	Failure *failure          `json:"failure,omitempty"`
}

// failure is the error of the verb.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// document is what the verbs print with --output json, as far as steps hand it on. A digest is a text in some and a whole
// release in others.
type document struct {
	Ref         string           `json:"ref"`
	Version     string           `json:"version"`
	Environment string           `json:"environment"`
	Unchanged   bool             `json:"unchanged"`
	Release     json.RawMessage  `json:"release"`
	Engines     []engineDocument `json:"engines"`
	Decision    *struct {
		Requirements []policy.Requirement `json:"requirements"`
	} `json:"decision"`
	Error *failure `json:"error"`
}

type engineDocument struct {
	Label       string          `json:"label"`
	Digest      registry.Digest `json:"digest"`
	Parity      *verdict        `json:"parity"`
	Performance *verdict        `json:"performance"`
}

type verdict struct {
	Verdict evidence.Verdict `json:"verdict"`
}

// outputsOf takes the outputs of a step from what the verb printed. release-digest is there whenever the verb knew it, also
// in a dry run and where the verb failed.
func outputsOf(verb string, exit int, printed []byte) (result, error) {
	var d document
	if len(printed) > 0 {
		if err := json.Unmarshal(printed, &d); err != nil {
			return result{}, registry.Errorf(registry.CodeInternal, "what %s printed is not the JSON that was asked for: %w", verb, err)
		}
	}
	r := result{Verb: verb, Exit: exit, Failure: d.Error, Outputs: map[string]string{}}
	set := func(name, value string) {
		if value != "" {
			r.Outputs[name] = value
		}
	}
	set("ref", d.Ref)
	set("version", d.Version)
	if exit == 0 {
		set("environment", d.Environment)
	}
	var digest string
	var release artifact.Release
	if json.Unmarshal(d.Release, &digest) == nil {
		set("release-digest", digest)
	} else if json.Unmarshal(d.Release, &release) == nil {
		set("release-digest", string(release.Digest))
		if release.Digest != "" {
			set("version", release.Tag())
		}
	}
	engines, verdicts := map[string]string{}, map[string]string{}
	for _, e := range release.Engines {
		engines[e.Label()] = string(e.Digest)
	}
	for _, e := range d.Engines {
		engines[e.Label] = string(e.Digest)
		verdicts[e.Label] = string(worse(e.Parity, e.Performance))
	}
	set("engine-digests", object(engines))
	set("verdicts", object(verdicts))
	if d.Decision != nil {
		decision := policy.Decision{Requirements: d.Decision.Requirements}
		set("allowed", strconv.FormatBool(decision.Allowed() && exit == 0))
	}
	return r, nil
}

// worse is the verdict of an engine: that on parity, unless latency alone failed.
func worse(parity, latency *verdict) evidence.Verdict {
	switch {
	case parity == nil:
		return evidence.VerdictUndecided
	case parity.Verdict == evidence.VerdictPass && latency != nil && latency.Verdict != evidence.VerdictPass && latency.Verdict != evidence.VerdictRecorded:
		return latency.Verdict
	}
	return parity.Verdict
}

// object is a JSON object in one line; empty for one without members.
func object(values map[string]string) string {
	if len(values) == 0 {
		return ""
	}
	text, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	return string(text)
}

// changes says whether the step made or measured a release, so that a report on it has news.
func (r result) changes() bool {
	return r.Outputs["ref"] != "" && slices.Contains([]string{"build", "assemble", "verify"}, r.Verb)
}

// names are the outputs in the order of their names.
func (r result) names() []string { return slices.Sorted(maps.Keys(r.Outputs)) }
