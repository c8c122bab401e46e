package export

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// annotation is the prefix of the annotations of an exported policy.
const annotation = "mlpromote.dev/"

// exportedAt is the annotation with the time of the export, which alone differs between exports of the same state.
const exportedAt = annotation + "exported-at"

// restrictionList is the annotation with the counter of the restriction list that the denied digests rest on.
const restrictionList = annotation + "restriction-list"

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// maxObjectName is how long names of objects are, so that they are labels too (RFC 1123).
const maxObjectName = 50

// name is that of the object: the environment and the model, with a part of their hash if that is not all that they are.
func (a Admission) name() string {
	of := a.Environment
	if a.Model != "" {
		of = registry.Repository(of, a.Model)
	}
	name := "mlpromote-" + notInName.ReplaceAllString(of, "-")
	if name == "mlpromote-"+of && len(name) <= maxObjectName {
		return name
	}
	sum := sha256.Sum256([]byte(of))
	return strings.TrimSuffix(name[:min(len(name), maxObjectName)], "-") + "-" + hex.EncodeToString(sum[:4])
}

// metadata is the same for every object of a policy, but for its name.
func (a Admission) metadata(name string, at time.Time) string {
	var ids []string
	for _, k := range a.Keys {
		ids = append(ids, k.ID[:16])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "metadata:\n  name: %s\n  annotations:\n", name)
	rows := [][2]string{
		{exportedAt, at.UTC().Format(time.RFC3339)},
		{annotation + "resource", a.ResourceURI},
		{restrictionList, strconv.FormatInt(a.RestrictionList, 10)},
		{annotation + "denied", strconv.Itoa(len(a.Denied))},
		{annotation + "promoters", strings.Join(ids, " ")},
	}
	if a.Partial {
		rows = append(rows, [2]string{annotation + "partial", "true"})
	}
	for _, row := range rows {
		fmt.Fprintf(&b, "    %s: %s\n", row[0], strconv.Quote(row[1]))
	}
	return b.String()
}

// block is text as a literal block of YAML, indented by so many spaces.
func block(text string, indent int) string {
	pad := strings.Repeat(" ", indent)
	return "|\n" + pad + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+pad) + "\n"
}

// quoted is a list of texts for CEL and CUE, which quote as Go does.
func quoted(texts []string, between string) string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = strconv.Quote(text)
	}
	return strings.Join(out, between)
}
