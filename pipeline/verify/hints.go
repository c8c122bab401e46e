package verify

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/remedy"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
)

// hint adds to the failures of engines, in their order, a cause and what to do about it; of returns neither for engines that it
// does not concern.
func hint(v Session, failures []error, of func(i int, c run.Candidate) (cause, next string)) {
	for i, c := range v.candidates {
		if failures[i] == nil || c.Tool.Served != nil { // the hints are about runtimes
			continue
		}
		if cause, next := of(i, c); next != "" {
			failures[i] = remedy.WithHint(failures[i], c.Engine.Label(), cause, next)
		}
	}
}

// exceeds reports whether an engine of these numbers exceeds a limit.
func exceeds(c run.Candidate, failure error, precision string) bool {
	numbers, _ := artifact.NumberFormat(c.Engine.Precision)
	return numbers == precision && registry.HasCode(failure, registry.CodeLimit)
}

// sets reports whether an engine's load profile sets an option.
func sets(c run.Candidate, option string) bool {
	return c.Engine.Load != nil && c.Engine.Load.Options[option] != ""
}

// hintBF16 is about runtimes that compute fp32 in bf16 on this processor, and what keeps them from that.
func hintBF16(v Session, failures []error) {
	has := func(feature string) bool { return slices.Contains(v.Node.CPU.Features, feature) }
	if !has("avx512_bf16") && !has("amx_bf16") {
		return
	}
	hint(v, failures, func(i int, c run.Candidate) (cause, next string) {
		option, value := c.Tool.Profile.KeepsFP32[0], c.Tool.Profile.KeepsFP32[1]
		if option == "" || sets(c, option) || !exceeds(c, failures[i], validators.PrecisionFP32) {
			return "", ""
		}
		return fmt.Sprintf("by itself, %s computes fp32 in bf16 on this processor", c.Tool.Profile.Name),
			fmt.Sprintf("write load: {options: {%s: %s}, required: true} in the target %s to keep fp32 (docs/toolchains/%s.md)",
				option, value, c.Engine.Target.Name, c.Tool.Profile.Name)
	})
}

// hintThreads is about runtimes with threads that wait for one another without sleeping, so that a machine that does other work
// runs them many times slower, and what keeps them from that.
func hintThreads(v Session, engines []VerifiedEngine, failures []error) {
	hint(v, failures, func(i int, c run.Candidate) (cause, next string) {
		profile := c.Tool.Profile
		if profile.Spinning == "" || !engines[i].late || sets(c, profile.Spinning) {
			return "", ""
		}
		return fmt.Sprintf("%s takes many times as long on a machine that does other work", profile.Name),
			fmt.Sprintf("write load: {options: {%s: 1}} in the target %s (docs/toolchains/%s.md)", profile.Spinning, c.Engine.Target.Name, profile.Name)
	})
}

// hintHalf is about fp16 engines, and how to find the numbers that float16 does not hold.
func hintHalf(v Session, failures []error) {
	hint(v, failures, func(i int, c run.Candidate) (cause, next string) {
		if !exceeds(c, failures[i], validators.PrecisionFP16) {
			return "", ""
		}
		return fmt.Sprintf("variant %s: float16 ends at 65504, and has 11 bits", c.Engine.Variant),
			"mlpromote bisect " + remedy.RefMark + remedy.EngineMark + " finds the nodes with numbers that it does not hold, " +
				"which can stay in float32: quantize: {method: fp16, exclude: [NODE, ...]} in the variant"
	})
}

// hintConverted is about fp32 engines of sources that were converted to ONNX: what they are compared with is the framework's.
func hintConverted(v Session, failures []error) {
	framework, _, _ := strings.Cut(v.Golden.Set.Kind, "/")
	if framework == run.OnnxRuntime || goldenset.ConversionText(*v.Golden.Set, v.Golden.Set.Kind) != "" { // the cause is known
		return
	}
	hint(v, failures, func(i int, c run.Candidate) (cause, next string) {
		if !exceeds(c, failures[i], validators.PrecisionFP32) {
			return "", ""
		}
		return fmt.Sprintf("the conversion to ONNX computes something else than %s, such as a rounded value on the other side of a split of a tree; or a fault of the runtime", framework),
			"compare the named case in " + framework + " (a scaler in front of trees is one cause: leave it out); " +
				"mlpromote bisect " + remedy.RefMark + remedy.EngineMark + " compares the engine with the converted model alone"
	})
}
