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
		"registry.Approval.resourceUri":        {"pattern": "^oci://."},
		"registry.Approval.comment":            some,
		"registry.Approval.accepts":            {"maxItems": evidence.MaxAccepts},
		"registry.RestrictionList.resourceUri": {"pattern": "^oci://."},
		"registry.RestrictionList.counter":     {"minimum": 1},
		"registry.RestrictionList.reason":      some,
		"registry.RestrictionList.entries":     {"type": "array", "maxItems": evidence.MaxRestrictions},
		"registry.Restriction.reason":          some,
		"registry.Restriction.by":              some,
		"registry.BreakGlass.resourceUri":      {"pattern": "^oci://."},
		"registry.BreakGlass.comment":          some,
		"registry.BreakGlass.skips":            {"minItems": 1, "uniqueItems": true, "items": object{"enum": policy.Skippable()}},
		"registry.TrustBundle.registry":        some,
		"registry.TrustBundle.version":         {"minimum": 1},
		"registry.TrustBundle.trust":           {"type": "array", "minItems": 1},
		"registry.BundledRestrictions.counter": {"minimum": 0},
		"registry.KeptCheckpoint.size":         {"minimum": 0},
		"registry.VSA.resourceUri":             some,
		"registry.VSA.verificationResult":      {"enum": []string{evidence.VSAPassed, "FAILED"}},
		"registry.VSA.verifiedLevels":          {"type": "array", "minItems": 1},
		"registry.VSAVerifier.id":              some,
		"registry.VSAPolicy.uri":               some,
		"registry.CaseFigures.size":            {"minimum": 0, "maximum": evidence.MaxCaseFigures},
		"pipeline.TestResult.result":           {"enum": []string{"PASSED", "WARNED", "FAILED"}},
		"pipeline.BuildDefinition.buildType":   {"const": restriction.BuildType},
		"pipeline.Builder.id":                  some,
		"remotecache.File.name":                some,
		"registry.PerformanceReport.budgetNs":  count,
		"registry.PerformanceReport.tookNs":    count,
		"registry.PerformanceReport.warmup":    count,
		"registry.RunSettings.threads":         count,
		"registry.ConsistencyCheck.affected":   count,
		"registry.ConsistencyCheck.cases":      count,
		"registry.Accuracy.cases":              count,
		"registry.Accuracy.count":              count,
		"registry.ProviderShare.nodes":         count,
		"registry.ProviderShare.timeNs":        count,
		"registry.OutputFigures.newNaN":        count,
		"registry.OutputFigures.newInf":        count,
		"registry.PlainLoad.cases":             count,
		"registry.ParityReport.rules":          {"const": evidence.ReportRules},
		"registry.ParityReport.attempts":       count,
		"registry.LatencyRatio.blocks":         count,
		"registry.LatencyRatio.currentP50Ns":   count,
	}
	for of, keys := range map[string][]string{
		"registry.CasesRun": {"count", "ran", "earlier"},
		"registry.Latency":  {"batch", "p50Ns", "p90Ns", "p99Ns", "perSecond", "samples"},
	} {
		for _, key := range keys {
			all[of+"."+key] = count
		}
	}
	return all
}
