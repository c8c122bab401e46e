package predicates

import (
	"reflect"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/typeschema"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/validators"
)

type object = typeschema.Object

// hexDigest is a digest as OCI writes it.
const hexDigest = `^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`

// types are the schemas of types that encode themselves, and of those with few values.
func types() map[reflect.Type]object {
	text := object{"type": "string"}
	options := object{"type": "object", "additionalProperties": text}
	provider := object{"type": "object", "properties": object{"name": text, "options": options}, "required": []string{"name", "options"}}
	return map[reflect.Type]object{
		reflect.TypeFor[evidence.Figure]():   {"anyOf": []any{object{"type": "number"}, object{"enum": []string{"inf", "-inf", "nan"}}}},
		reflect.TypeFor[artifact.Provider](): {"anyOf": []any{text, provider}},
		reflect.TypeFor[registry.Digest]():   {"type": "string", "pattern": hexDigest},
		reflect.TypeFor[evidence.DigestSet](): {
			"type":                 []string{"object", "null"},
			"description":          "hash algorithm to hex digits",
			"properties":           object{"sha256": object{"type": "string", "pattern": "^[0-9a-f]{64}$"}},
			"additionalProperties": object{"type": "string", "pattern": "^[0-9a-f]+$"},
		},
		reflect.TypeFor[evidence.Verdict](): {"enum": []evidence.Verdict{
			evidence.VerdictPass, evidence.VerdictFail, evidence.VerdictUndecided, evidence.VerdictRecorded, "",
		}},
		reflect.TypeFor[evidence.Trial]():           {"enum": evidence.Trials()},
		reflect.TypeFor[evidence.Baseline]():        {"enum": evidence.Baselines()},
		reflect.TypeFor[evidence.RestrictionKind](): {"enum": evidence.RestrictionKinds()},
		reflect.TypeFor[evidence.Reproducibility](): {"enum": []evidence.Reproducibility{
			evidence.ReproducibleBytes, evidence.ReproducibleSemantic, evidence.ReproducibleNone,
		}},
		reflect.TypeFor[validators.Dim](): {"type": []string{"integer", "string"}},
	}
}

// limits are what holds of single fields beside their type, by "package.Type.key".
func limits() map[string]object {
	count, some := object{"minimum": 0}, object{"minLength": 1}
	all := map[string]object{
		"evidence.Approval.resourceUri":        {"pattern": "^oci://."},
		"evidence.Approval.comment":            some,
		"evidence.Approval.accepts":            {"maxItems": evidence.MaxAccepts},
		"evidence.RestrictionList.resourceUri": {"pattern": "^oci://."},
		"evidence.RestrictionList.counter":     {"minimum": 1},
		"evidence.RestrictionList.reason":      some,
		"evidence.RestrictionList.entries":     {"type": "array", "maxItems": evidence.MaxRestrictions},
		"evidence.Restriction.reason":          some,
		"evidence.Restriction.by":              some,
		"evidence.BreakGlass.resourceUri":      {"pattern": "^oci://."},
		"evidence.BreakGlass.comment":          some,
		"evidence.BreakGlass.skips":            {"minItems": 1, "uniqueItems": true, "items": object{"enum": policy.Skippable()}},
		"trust.TrustBundle.registry":           some,
		"trust.TrustBundle.version":            {"minimum": 1},
		"trust.TrustBundle.trust":              {"type": "array", "minItems": 1},
		"trust.BundledRestrictions.counter":    {"minimum": 0},
		"trust.KeptCheckpoint.size":            {"minimum": 0},
		"evidence.VSA.resourceUri":             some,
		"evidence.VSA.verificationResult":      {"enum": []string{evidence.VSAPassed, "FAILED"}},
		"evidence.VSA.verifiedLevels":          {"type": "array", "minItems": 1},
		"evidence.VSAVerifier.id":              some,
		"evidence.VSAPolicy.uri":               some,
		"evidence.CaseFigures.size":            {"minimum": 0, "maximum": evidence.MaxCaseFigures},
		"verify.TestResult.result":             {"enum": []string{"PASSED", "WARNED", "FAILED"}},
		"build.Definition.buildType":           {"const": restriction.BuildType},
		"build.Builder.id":                     some,
		"remotecache.File.name":                some,
		"evidence.PerformanceReport.budgetNs":  count,
		"evidence.PerformanceReport.tookNs":    count,
		"evidence.PerformanceReport.warmup":    count,
		"evidence.RunSettings.threads":         count,
		"evidence.Check.affected":              count,
		"evidence.Check.cases":                 count,
		"evidence.Accuracy.cases":              count,
		"evidence.Accuracy.count":              count,
		"evidence.ProviderShare.nodes":         count,
		"evidence.ProviderShare.timeNs":        count,
		"evidence.OutputFigures.newNaN":        count,
		"evidence.OutputFigures.newInf":        count,
		"evidence.ParityReport.rules":          {"const": evidence.ReportRules},
		"evidence.ParityReport.attempts":       count,
		"evidence.LatencyRatio.blocks":         count,
		"evidence.LatencyRatio.currentP50Ns":   count,
	}
	for of, keys := range map[string][]string{
		"evidence.CasesRun": {"count", "ran", "earlier"},
		"evidence.Latency":  {"batch", "p50Ns", "p90Ns", "p99Ns", "perSecond", "samples"},
	} {
		for _, key := range keys {
			all[of+"."+key] = count
		}
	}
	return all
}
