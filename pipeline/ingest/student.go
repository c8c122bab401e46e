package ingest

import (
	"os"
	"path"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// readStudents reads the models that variants name in place of the source, by the name of the variant. They pass the same check of
// untrusted formats as the source, and have the inputs and outputs of it.
func (in *Inputs) readStudents(s *spec.Spec, bare validators.Interface) error {
	in.Students = make(map[string]*plan.Student)
	for _, v := range s.Variants {
		if v.Model.Written == "" {
			continue
		}
		student, err := readStudent(specFiles{s.Files}, s, v, studentOf{bare, in.Interface, &in.Notes})
		if err != nil {
			return err
		}
		in.Students[v.Name] = student
	}
	return nil
}

// studentOf is what a student has to have: the interface of the reference model as its graph says it, and with the names that
// builds give it.
type studentOf struct {
	bare, named validators.Interface
	notes       *[]string // what a person should know of the models
}

func readStudent(files specFiles, s *spec.Spec, v spec.Variant, of studentOf) (*plan.Student, error) {
	opened, err := openSource(files, spec.Source{Path: v.Model, Format: spec.FormatONNX})
	if err != nil {
		return nil, inside("variant "+v.Name, err)
	}
	refuse := func(format string, args ...any) error {
		return inside(s.File+": variant "+v.Name+": "+v.Model.Written, registry.Errorf(registry.CodeInvalid, format, args...))
	}
	iface, err := run.InterfaceOf(opened.Model)
	if err != nil {
		return nil, refuse("%w", err)
	}
	if why := otherInterface(of.bare, iface); why != "" {
		return nil, refuse("%s: a model that takes the place of the source has the same inputs and outputs, in the same order", why)
	}
	if classes := opened.Model.Classes; classes != nil {
		for _, output := range of.named.Outputs {
			if len(output.Names) > 0 && !slices.Equal(output.Names, classes) {
				return nil, refuse("its classes are %q, and those of output %q are %q", classes, output.Name, output.Names)
			}
		}
	}
	if err := checkStudentQuantized(v, opened.Model.Quantized(), refuse); err != nil {
		return nil, err
	}
	needs, err := opened.Model.Runtime()
	if err != nil {
		return nil, refuse("%w", err)
	}
	*of.notes = append(*of.notes, randomNotes(v.Model.Written, opened.Model)...)
	student := &plan.Student{Written: v.Model.Written, Files: opened.Files, Needs: needs}
	if q := opened.Model.Quantized(); q.Nodes > 0 {
		if err := CheckScales(opened.Files); err != nil {
			return nil, inside(s.File+": variant "+v.Name+": "+v.Model.Written, err)
		}
		student.Said = q.String()
	}
	return student, nil
}

// checkStudentQuantized wants what the spec says of a student to be what it is: quantized already, and left so, or neither.
func checkStudentQuantized(v spec.Variant, found onnx.Quantized, refuse func(string, ...any) error) error {
	asIs := v.Quantize != nil && v.Quantize.Method == spec.MethodNone
	switch {
	case found.Nodes == 0 && asIs:
		return refuse("it is not quantized: name a method, such as quantize: {method: static}, or leave out quantize")
	case found.Nodes > 0 && len(v.Compress) > 0:
		return refuse("it is quantized already (%s), and compression starts from weights in full precision", found)
	case found.Nodes > 0 && !asIs:
		return refuse("it is quantized already (%s): write quantize: {method: none}", found)
	case found.Nodes > 0 && found.Bits != 0 && v.Precision != artifact.CompressedPrecision(PrecisionOf(found)):
		return refuse("it is quantized (%s) to %s: write quantize: {method: none, bits: %d}", found, PrecisionOf(found), found.Bits)
	}
	return nil
}

// otherInterface says in what an interface differs from the one that it should be; empty for nothing. Dimensions that are open may
// have other names.
func otherInterface(want, got validators.Interface) string {
	if why := otherTensors("input", want.Inputs, got.Inputs); why != "" {
		return why
	}
	return otherTensors("output", want.Outputs, got.Outputs)
}

func otherTensors(what string, want, got []validators.TensorInfo) string {
	if len(want) != len(got) {
		return "it has " + registry.Count(len(got), what) + ", and the source has " + registry.Count(len(want), what)
	}
	for i, w := range want {
		g := got[i]
		if w.Name != g.Name || w.DType != g.DType || !sameShape(w.Shape, g.Shape) {
			return what + " " + describeTensor(g) + " is " + describeTensor(w) + " in the source"
		}
	}
	return ""
}

func sameShape(a, b []validators.Dim) bool {
	return slices.EqualFunc(a, b, func(a, b validators.Dim) bool {
		return (a.Symbol == "") == (b.Symbol == "") && a.Size == b.Size
	})
}

func describeTensor(t validators.TensorInfo) string {
	text := registry.PlainText(t.Name) + " " + string(t.DType) + "["
	for i, d := range t.Shape {
		if i > 0 {
			text += ","
		}
		text += registry.PlainText(d.String())
	}
	return text + "]"
}

// checkStudents lets the models that variants name pass, as [checkSource] does for the source.
func checkStudents(files specFiles, s *spec.Spec) error {
	for _, v := range s.Variants {
		if v.Model.Written == "" {
			continue
		}
		source := spec.Source{Path: v.Model, Format: spec.FormatONNX}
		err := files.look(v.Model.Written, func(f *os.File) error {
			_, err := files.readModel(source, f)
			return err
		})
		if err != nil {
			return inside("variant "+v.Name+": model", err)
		}
	}
	return nil
}

// StudentResources are the digests of a student, as provenance names them.
func StudentResources(student *plan.Student) []run.Resource {
	var all []run.Resource
	for _, in := range student.Files {
		all = append(all, run.Resource{Name: "student " + in.Name, Digest: evidence.NewDigestSet(in.Digest),
			Annotations: map[string]any{"path": path.Join(path.Dir(student.Written), path.Base(in.Name))}})
	}
	if len(all) > 0 {
		all[0].Annotations["path"] = student.Written
	}
	return all
}

// ModelInputs are the files that an engine is made from before anything compresses or quantizes them.
func (in Inputs) ModelInputs(variant string) []toolchain.Input {
	if student := in.Students[variant]; student != nil {
		return student.Files
	}
	return in.Model
}
