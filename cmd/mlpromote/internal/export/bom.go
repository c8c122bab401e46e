package export

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// BOM writes what is known about a release as a CycloneDX 1.7 ML-BOM, in canonical JSON. resource is the URI of the
// repository that has the release. The same release and evidence give the same bytes: the serial number is derived from the
// rest, and the timestamp is that of the newest statement.
func BOM(found inspection.Result, resource string) ([]byte, error) {
	counted, _ := evidence.Accept(found.Release, found.Claims)
	b := builder{found: found, claims: counted, resource: resource, components: map[string]cdxComponent{}}
	document := cdxBOM{Schema: cdxSchema, Format: "CycloneDX", SpecVersion: "1.7", Version: 1}
	document.Metadata.Component = b.release()
	for i, e := range found.Release.Engines {
		b.engine(e, found.Engines[i])
	}
	b.source()
	for _, ref := range slices.Sorted(maps.Keys(b.components)) {
		document.Components = append(document.Components, b.components[ref])
	}
	slices.SortFunc(b.depends, func(x, y cdxDependency) int { return strings.Compare(x.Ref, y.Ref) })
	document.Dependencies = b.depends
	if !b.newest.IsZero() {
		document.Metadata.Timestamp = b.newest.UTC().Format(time.RFC3339)
	}
	rest, err := registry.CanonicalJSON(document)
	if err != nil {
		return nil, err
	}
	document.SerialNumber = serial(rest)
	return registry.CanonicalJSON(document)
}

// serial is a UUID made of the hash of the rest of the document: version 8, for values of one's own. Source: RFC 9562
// section 5.8.
func serial(rest []byte) string {
	sum := sha256.Sum256(rest)
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// builder collects components, each once, and what depends on what.
type builder struct {
	found      inspection.Result
	claims     []evidence.Claim // that count
	resource   string
	components map[string]cdxComponent // by bom-ref
	depends    []cdxDependency
	newest     time.Time
}

const (
	sourceRef  = "source"
	releaseRef = "release"
)

// add adds a component, unless it is there.
func (b *builder) add(c cdxComponent) string {
	if _, ok := b.components[c.Ref]; !ok {
		b.components[c.Ref] = c
	}
	return c.Ref
}

// release is what the document is about.
func (b *builder) release() cdxComponent {
	r := b.found.Release
	c := cdxComponent{
		Type: cdxModel, Ref: releaseRef, Name: r.Model, Version: r.Tag(), Hashes: hashes(r.Digest), References: b.evidence(r.Digest),
		Properties: []cdxProperty{{"mlpromote:resource", b.resource}, {"mlpromote:plan", string(r.Plan)}, {"mlpromote:sources", string(r.Sources)}},
	}
	for _, q := range b.found.Quarantines {
		c.Properties = append(c.Properties, cdxProperty{"mlpromote:quarantine", q.Label + ": " + registry.PlainText(q.Reason)})
	}
	for _, e := range r.Engines {
		b.depend(releaseRef, engineRef(e))
	}
	return c
}

// source is the model as it came, from which everything was built.
func (b *builder) source() {
	if len(b.found.Release.Engines) == 0 {
		return
	}
	b.add(b.original())
}

// original is the component of the reference model.
func (b *builder) original() cdxComponent {
	r := b.found.Release
	return cdxComponent{Type: cdxModel, Ref: sourceRef, Name: r.Model + " reference", Version: r.Version, Hashes: hashes(r.Engines[0].Reference)}
}

func engineRef(e artifact.Engine) string { return "engine:" + string(e.Digest) }

// engine adds an engine with what it was made from and with, and what was measured of it.
func (b *builder) engine(e artifact.Engine, known inspection.Engine) {
	r := b.found.Release
	made := provenanceOf(b.claims, e.Digest)
	c := cdxComponent{
		Type: cdxModel, Ref: engineRef(e), Name: r.Model + " " + e.Label(), Version: r.Tag(), Hashes: hashes(e.Digest), References: b.evidence(e.Digest),
		Pedigree: &cdxPedigree{Ancestors: b.ancestors(e)},
		Properties: []cdxProperty{{"mlpromote:target", e.Target.Name},
			{"mlpromote:precision", e.Precision}, {"mlpromote:native-code", strconv.FormatBool(e.NativeCode)}},
	}
	b.depend(c.Ref, sourceRef)
	b.depend(c.Ref, b.toolchain(e.Toolchain))
	if q := made.BuildDefinition.InternalParameters.Made.Quantizer; q != nil {
		b.depend(c.Ref, b.toolchain(*q))
	}
	for _, o := range e.Operators {
		b.depend(c.Ref, b.add(cdxComponent{Type: "library", Ref: "operators:" + string(o.Digest), Name: o.Path, Hashes: hashes(o.Digest)}))
	}
	card := &cdxModelCard{}
	for _, d := range made.BuildDefinition.InternalParameters.Calibration {
		ref := b.data("calibration", d)
		b.depend(c.Ref, ref)
		card.Parameters.Datasets = append(card.Parameters.Datasets, cdxRef{ref})
	}
	if p := known.Parity; p != nil {
		for _, read := range []struct {
			kind string
			of   evidence.DigestSet
		}{{"cases", p.Cases.Digest}, {"golden outputs", p.Cases.Golden}} {
			if d := read.of.SHA256(); d != "" {
				card.Parameters.Datasets = append(card.Parameters.Datasets, cdxRef{b.data(read.kind, d)})
			}
		}
		card.Analysis.Metrics = parityMetrics(p)
		for _, name := range slices.Sorted(maps.Keys(p.Outputs)) {
			card.Parameters.Outputs = append(card.Parameters.Outputs, cdxFormat{name + ": " + p.Outputs[name].DType})
		}
		c.Properties = append(c.Properties, cdxProperty{"mlpromote:verdict", string(p.Verdict)},
			cdxProperty{"mlpromote:confidence", figure(p.Confidence) + ", of each bound alone"},
			cdxProperty{"mlpromote:cases", fmt.Sprintf("%d of %d, %s", p.Cases.Ran, p.Cases.Count, p.Cases.Origin)},
			cdxProperty{"mlpromote:limits", string(p.Limits.SHA256())})
		b.saw(p.FinishedOn)
	}
	if p := known.Performance; p != nil {
		card.Analysis.Metrics = append(card.Analysis.Metrics, latencyMetrics(p)...)
		b.saw(p.FinishedOn)
	}
	c.Card = card
	b.add(c)
}

// ancestors are what the engine was made from: the reference model, or its variant in another precision, whose ancestor that is.
func (b *builder) ancestors(e artifact.Engine) []cdxComponent {
	from := b.original()
	from.Ref = ""
	if e.Variant == e.Precision && e.Precision == "fp32" {
		return []cdxComponent{from}
	}
	return []cdxComponent{{
		Type: cdxModel, Name: b.found.Release.Model + " " + e.Variant, Version: b.found.Release.Version,
		Pedigree: &cdxPedigree{Ancestors: []cdxComponent{from}}, Properties: []cdxProperty{{"mlpromote:precision", e.Precision}},
	}}
}

// toolchain adds the software that built an engine or quantized a model.
func (b *builder) toolchain(t artifact.Toolchain) string {
	c := cdxComponent{Type: "application", Ref: "toolchain:" + t.Name + "@" + t.Version, Name: t.Name, Version: t.Version}
	if t.Lock != "" {
		c.Ref += ":" + string(t.Lock)
		c.Properties = []cdxProperty{{"mlpromote:lock", string(t.Lock)}}
	}
	return b.add(c)
}

// data adds data by its digest.
func (b *builder) data(kind string, d registry.Digest) string {
	return b.add(cdxComponent{
		Type: "data", Ref: "data:" + string(d), Name: b.found.Release.Model + " " + kind, Hashes: hashes(d),
		Data: []cdxData{{Type: "dataset", Name: kind}},
	})
}

func (b *builder) depend(ref, on string) {
	i := slices.IndexFunc(b.depends, func(d cdxDependency) bool { return d.Ref == ref })
	if i < 0 {
		b.depends = append(b.depends, cdxDependency{Ref: ref})
		i = len(b.depends) - 1
	}
	if !slices.Contains(b.depends[i].On, on) {
		b.depends[i].On = append(b.depends[i].On, on)
		slices.Sort(b.depends[i].On)
	}
}

func (b *builder) saw(at time.Time) {
	if at.After(b.newest) {
		b.newest = at
	}
}

// evidence are the statements that count about a subject, by the digest of the manifest that holds each.
func (b *builder) evidence(subject registry.Digest) (refs []cdxReference) {
	for _, c := range b.claims {
		if c.Subject == subject {
			refs = append(refs, cdxReference{URL: b.resource + "@" + string(c.Bundle),
				Type: "attestation", Comment: c.Statement.PredicateType, Hashes: hashes(c.Bundle)})
		}
	}
	if summary, ok := b.summary(subject); ok {
		b.saw(summary.TimeVerified)
	}
	slices.SortFunc(refs, func(x, y cdxReference) int {
		return cmp.Or(strings.Compare(x.Comment, y.Comment), strings.Compare(x.URL, y.URL))
	})
	return refs
}

// summary is the promoter's summary of the release.
func (b *builder) summary(subject registry.Digest) (evidence.VSA, bool) {
	if b.found.Summary == nil || subject != b.found.Release.Digest {
		return evidence.VSA{}, false
	}
	return *b.found.Summary, true
}

// built is what a BOM takes from a provenance.
type built struct {
	BuildDefinition struct {
		InternalParameters struct {
			Calibration []registry.Digest `json:"calibration"`
			Made        struct {
				Quantizer *artifact.Toolchain `json:"quantizer"`
			} `json:"made"`
		} `json:"internalParameters"`
	} `json:"buildDefinition"`
}

// provenanceOf reads the first provenance about an engine that counts; the zero built if there is none.
func provenanceOf(claims []evidence.Claim, engine registry.Digest) built {
	for _, c := range claims {
		var made built
		if c.Subject == engine && c.Statement.PredicateType == evidence.PredicateProvenance && registry.DecodeSigned(c.Statement.Predicate, &made) == nil {
			return made
		}
	}
	return built{}
}
