package releases

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
)

// branch is something in a tree, with what it was made of below it.
type branch struct {
	Text    string
	Note    string
	Digest  page.Digest
	URL     string // of its page
	Current bool   // it is what the page is about
	Parts   []branch
}

// slsa is what pages read of SLSA provenance.
type slsa struct {
	BuildDefinition struct {
		InternalParameters struct {
			Made struct {
				Quantizer *artifact.Toolchain `json:"quantizer"`
				Quantize  map[string]any      `json:"quantize"`
			} `json:"made"`
			Node        artifact.Node     `json:"node"`
			Calibration []registry.Digest `json:"calibration"`
		} `json:"internalParameters"`
		ResolvedDependencies []resource `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			Version map[string]string `json:"version"`
		} `json:"builder"`
		Metadata struct {
			InvocationID string    `json:"invocationId"`
			FinishedOn   time.Time `json:"finishedOn"`
		} `json:"metadata"`
		Byproducts []resource `json:"byproducts"`
	} `json:"runDetails"`
}

// resource is something that provenance names.
type resource struct {
	Name        string             `json:"name"`
	Digest      evidence.DigestSet `json:"digest"`
	Annotations map[string]any     `json:"annotations"`
}

// named are the digests of the dependencies of a name, or whose names begin with it.
func (p slsa) named(prefix string, exactly bool) []branch {
	var all []branch
	for _, r := range p.BuildDefinition.ResolvedDependencies {
		if r.Name == prefix || !exactly && strings.HasPrefix(r.Name, prefix) {
			all = append(all, branch{Text: registry.PlainText(r.Name), Digest: page.DigestOf(r.Digest.SHA256())})
		}
	}
	return all
}

// provenanceOf is the newest provenance of an engine that counts, with its claim; nil if there is none.
func provenanceOf(claims []evidence.Claim, engine registry.Digest) (*slsa, evidence.Claim) {
	var found *slsa
	var by evidence.Claim
	for _, c := range claims {
		if c.Subject != engine || c.Statement.PredicateType != evidence.PredicateProvenance {
			continue
		}
		var p slsa
		if registry.DecodeSigned(c.Statement.Predicate, &p) != nil {
			continue
		}
		if found == nil || p.RunDetails.Metadata.FinishedOn.After(found.RunDetails.Metadata.FinishedOn) {
			found, by = &p, c
		}
	}
	return found, by
}

// provenanceTree is the tree from the bytes of an engine to the commit that it was built of, as its builder signed it.
func provenanceTree(now storage.Clock, in Read, e artifact.Engine, files []artifact.File) []branch {
	root := branch{Text: "Engine " + registry.PlainText(e.Label()), Digest: page.DigestOf(e.Digest), Current: true}
	for _, f := range files {
		note := page.ByteSize(f.Size)
		switch f.Kind {
		case artifact.FileAsset:
			note += ", an asset"
		case artifact.FileCode:
			note += ", native code"
		}
		root.Parts = append(root.Parts, branch{Text: registry.PlainText(f.Path), Note: note, Digest: page.DigestOf(f.Digest)})
	}
	p, claim := provenanceOf(in.counted, e.Digest)
	if p == nil {
		return []branch{root}
	}
	made := branch{Text: "built by " + registry.PlainText(e.Toolchain.Name+" "+e.Toolchain.Version), Note: buildNote(now, p, claim)}
	for _, step := range p.RunDetails.Byproducts {
		note := ""
		if cached, _ := step.Annotations["cached"].(bool); cached {
			note = "taken from a cache"
		}
		made.Parts = append(made.Parts, branch{Text: registry.PlainText(step.Name), Note: note})
	}
	for _, name := range []string{"toolchain lock", "toolchain image", "toolchain packages", "quantizer lock"} {
		made.Parts = append(made.Parts, p.named(name, true)...)
	}
	made.Parts = append(made.Parts, p.named("tuning record", false)...)
	if n := len(p.BuildDefinition.InternalParameters.Calibration); n > 0 {
		made.Parts = append(made.Parts, branch{Text: "calibration", Note: registry.Count(n, "digest"), Parts: digests(p.BuildDefinition.InternalParameters.Calibration)})
	}
	reference := branch{Text: "reference model", Digest: page.DigestOf(e.Reference)}
	source := branch{Text: "source file", Parts: commitOf(claim)}
	if all := p.named("source", true); len(all) > 0 {
		source.Digest = all[0].Digest
	}
	reference.Parts = append(append([]branch{source}, p.named("source file", true)...), p.named("imported model", true)...)
	root.Parts = append(root.Parts, made, reference)
	judged := branch{Text: "judged by", Parts: []branch{{Text: "limits", Digest: page.DigestOf(e.Limits)}, {Text: "interface", Digest: page.DigestOf(e.Interface)}, {Text: "sources, with the cases", Digest: page.DigestOf(e.Sources)}}}
	root.Parts = append(root.Parts, judged)
	return []branch{root}
}

// buildNote says who built an engine, when, and on which machine.
func buildNote(now storage.Clock, p *slsa, claim evidence.Claim) string {
	text := "signed by " + signer(claim)
	for _, name := range slices.Sorted(maps.Keys(p.RunDetails.Builder.Version)) {
		text += ", " + name + " " + p.RunDetails.Builder.Version[name]
	}
	if kind := p.BuildDefinition.InternalParameters.Node.Kind(); kind != "" {
		text += ", on " + kind
	}
	if at := p.RunDetails.Metadata.FinishedOn; !at.IsZero() {
		text += ", " + page.MomentOf(now, at).Absolute
	}
	return registry.PlainText(text)
}

// digests are branches of digests alone.
func digests(all []registry.Digest) []branch {
	var out []branch
	for _, d := range all {
		out = append(out, branch{Digest: page.DigestOf(d)})
	}
	return out
}

// commitOf is the commit that a builder names, with what differed from it and the CI job.
func commitOf(claim evidence.Claim) []branch {
	origin := claim.Statement.Origin()
	switch {
	case origin == nil:
		return []branch{{Text: "commit not known", Note: "the builder does not state the origin of the spec"}}
	case origin.Git.Commit == "":
		return []branch{{Text: "commit not known", Note: registry.PlainText(origin.Git.Missing)}}
	}
	git := origin.Git
	commit := branch{Text: "commit " + registry.PlainText(git.Commit[:min(len(git.Commit), page.ShortDigest)]), Digest: page.Digest{Short: "", Full: ""}}
	notes := []string{}
	for _, note := range []string{git.Repository, git.Ref, git.Spec} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	switch git.State {
	case evidence.GitClean:
		notes = append(notes, "clean")
	case evidence.GitDirty:
		notes = append(notes, registry.Count(git.ChangedCount, "changed file"))
	default:
		notes = append(notes, "changed or not")
	}
	commit.Note = registry.PlainText(strings.Join(notes, ", "))
	for _, file := range git.Changed {
		commit.Parts = append(commit.Parts, branch{Text: registry.PlainText(file), Note: "differs from the commit"})
	}
	commit.Parts = append(commit.Parts, jobOf(origin.CI)...)
	return []branch{commit}
}

// jobOf is the CI job that built. What only the job says is not shown as proven.
func jobOf(ci *evidence.CIOrigin) []branch {
	switch {
	case ci == nil:
		return nil
	case ci.Run() != "":
		return []branch{{Text: "CI run", Note: registry.PlainText(ci.Run())}}
	case ci.Issuer != "":
		return []branch{{Text: "CI job", Note: "by a token of " + registry.PlainText(ci.Issuer)}}
	case ci.ClaimedRun() != "":
		return []branch{{Text: "claims to be the CI run", Note: ci.ClaimedRun() + ", not verified"}}
	}
	return []branch{{Text: "claims to be a CI job", Note: "not verified"}}
}

// derivation is the tree from the source of a release through its variants to its engines.
func derivation(in Read, e artifact.Engine) []branch {
	reference := branch{Text: "reference model", Digest: page.DigestOf(e.Reference)}
	at := make(map[string]int)
	for _, other := range in.Engines {
		i, ok := at[other.Variant]
		if !ok {
			i = len(reference.Parts)
			at[other.Variant] = i
			reference.Parts = append(reference.Parts, branch{Text: "variant " + registry.PlainText(other.Variant), Note: quantization(in, other)})
		}
		view := row(in, other)
		leaf := branch{Text: registry.PlainText(other.Label()), Note: view.Verdict.Word, Digest: view.Digest, URL: view.URL, Current: other.Digest == e.Digest}
		reference.Parts[i].Parts = append(reference.Parts[i].Parts, leaf)
	}
	root := branch{Text: "source file", Parts: []branch{reference}}
	if p, _ := provenanceOf(in.counted, e.Digest); p != nil {
		if all := p.named("source", true); len(all) > 0 {
			root.Digest = all[0].Digest
		}
	}
	return []branch{root}
}

// quantization says how the engines of a variant differ from the reference model.
func quantization(in Read, e artifact.Engine) string {
	note := e.Precision
	p, _ := provenanceOf(in.counted, e.Digest)
	if p == nil {
		return registry.PlainText(note)
	}
	how := p.BuildDefinition.InternalParameters
	if method, ok := how.Made.Quantize["method"].(string); ok {
		note += ", " + method + " quantization"
	}
	if q := how.Made.Quantizer; q != nil {
		note += fmt.Sprintf(" by %s %s", q.Name, q.Version)
	}
	if n := len(how.Calibration); n > 0 {
		note += ", calibrated"
	}
	return registry.PlainText(note)
}
