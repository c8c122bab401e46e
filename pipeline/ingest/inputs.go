package ingest

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// Read reads what the spec names besides its source, through the check of untrusted
// formats, and checks that all fits together.
func Read(s *spec.Spec, m Model, scratch string) (Inputs, error) {
	in := Inputs{Imported: m, Inputs: plan.Inputs{Name: s.Model, Version: s.Version, Preset: s.Limits.Preset,
		Limits: s.LimitOverrides(), Model: m.files, Import: m.Plan, Operators: m.Source.Operators}}
	if s.Reference != nil {
		in.Accepted = s.Reference.Accept
	}
	err := in.checkSourceFor(s, m)
	if err != nil {
		return Inputs{}, err
	}
	if in.Needs, err = m.Model.Runtime(); err != nil {
		return Inputs{}, registry.Errorf(registry.CodeInvalid, "%s: %w", s.Source.Path.Written, err)
	}
	apart, err := run.InterfaceOf(m.Model)
	if err != nil {
		return Inputs{}, registry.Errorf(registry.CodeInvalid, "%s: %w", s.Source.Path.Written, err)
	}
	bare, unnamed := withBatch(s, m.Model, apart)
	if err := s.CheckInterface(bare); err != nil {
		return Inputs{}, err
	}
	var kinds map[string]validators.Kind
	kinds, in.Guessed = kindsOf(s, bare, m.Model)
	if bare, err = bare.WithKinds(kinds); err != nil {
		return Inputs{}, registry.Errorf(registry.CodeInvalid, "%s: %w", s.File, err)
	}
	if _, _, err := bare.Detections(); err != nil {
		return Inputs{}, registry.Errorf(registry.CodeInvalid, "%s: outputs: %w", s.File, err)
	}
	if bare, in.Notes, err = named(s, m, bare); err != nil {
		return Inputs{}, err
	}
	in.Notes = append(in.Notes, randomNotes(s.Source.Path.Written, m.Model)...)
	if s.Source.Format == spec.FormatHuggingFace && len(s.Assets) == 0 {
		in.Notes = append(in.Notes, TokenizerNotes(TokenizerOf(m.Source.Files))...)
	}
	dims, err := m.Allowed().dims(s)
	if err != nil {
		return Inputs{}, err
	}
	bare.AnyNumbers = spec.TakesAnyNumbers(s.Source.Format)
	if in.Interface, err = bare.WithDims(dims); err != nil {
		return Inputs{}, registry.Errorf(registry.CodeInvalid, "%s: %w", s.File, err)
	}
	if unnamed != nil {
		in.batch = &unnamedBatch{apart: apart, unnamed: unnamed}
	}
	if err := in.readFiles(s, bare, scratch); err != nil {
		return Inputs{}, err
	}
	listed, err := requested(s, in.Students)
	if err != nil {
		return in, err
	}
	in.Engines = plan.InOrder(listed)
	return in, in.checkOperators(m.Model)
}

// readFiles reads what the spec names beside its source: students, programs, cases and assets.
func (in *Inputs) readFiles(s *spec.Spec, bare validators.Interface, scratch string) error {
	if err := in.readStudents(s, bare); err != nil {
		return err
	}
	if err := in.readProgram(s); err != nil {
		return err
	}
	if err := in.readSets(s, scratch); err != nil {
		return err
	}
	var err error
	if in.Assets, err = assetInputs(specFiles{s.Files}, s.Assets, in.Model); err != nil {
		return err
	}
	return in.checkLabelsName()
}

// checkSourceFor checks that the variants of the spec can be made of its source.
func (in *Inputs) checkSourceFor(s *spec.Spec, m Model) error {
	if s.Source.Format == spec.FormatGGUF {
		if err := checkGGUF(s, m.Source.Gguf); err != nil {
			return err
		}
	} else if err := checkQuantized(s, m.Model); err != nil {
		return err
	}
	if in.Quantized, in.Precision = quantizedSource(s, m.Model); in.Quantized != "" {
		if err := CheckScales(m.files); err != nil {
			return inside(s.Source.Path.Written, err)
		}
	}
	for _, v := range s.Variants {
		if err := checkCompressible(s, v, s.Source.Path.Written, m.Model); err != nil && v.Model.Written == "" {
			return err
		}
	}
	return nil
}

// kindsOf gives the kinds of outputs: those that the spec says, and else guesses, with why.
func kindsOf(s *spec.Spec, bare validators.Interface, model *onnx.Model) (kinds map[string]validators.Kind, guessed map[string]string) {
	kinds, guessed = s.Kinds(), make(map[string]string)
	for name, guess := range bare.GuessKinds(model.Producers) {
		if _, declared := kinds[name]; !declared {
			kinds[name], guessed[name] = guess.Kind, guess.Why
		}
	}
	return kinds, guessed
}

// CheckFiles refuses a spec whose model or assets cannot be built, before anything is made
// for it. Errors: CodeUnsafe for a format that runs code; CodeInvalid for a file that is not a model.
func CheckFiles(s *spec.Spec) error {
	files := specFiles{s.Files}
	if err := checkSource(files, s.Source); err != nil {
		return err
	}
	if err := checkStudents(files, s); err != nil {
		return err
	}
	for _, asset := range s.Assets {
		if err := files.look(asset.Written, refuseCode); err != nil {
			return inside("assets", err)
		}
	}
	return nil
}

func (in *Inputs) readSets(s *spec.Spec, scratch string) error {
	var err error
	if s.Cases.Generate > 0 {
		in.Cases, err = generatedCases(s, in.Imported.Model, in.Interface, scratch)
	} else {
		in.Cases, err = cases.Read(s.Files, s.Cases.Path.Written, toolchain.RoleCases, in.Interface, scratch)
		if err == nil {
			err = in.Cases.FindLabels(s.Cases.Labels, in.Interface, in.Limits.Accuracy)
		}
	}
	if err != nil {
		return err
	}
	if _, _, ok := in.Imported.Model.ShapedByData(); ok {
		if err := in.Cases.Separate(scratch); err != nil {
			return err
		}
	}
	if err := in.Cases.FindCopies(in.Interface); err != nil {
		return err
	}
	if err := in.Cases.Convert(in.Interface, filepath.Join(scratch, "cases-for-engines")); err != nil {
		return err
	}
	if in.Cases.Record.Labels != "" {
		if err := in.Cases.FindRight(in.Interface, in.Limits.Accuracy); err != nil {
			return err
		}
	}
	if s.Cases.Generate == 0 {
		if err := in.Cases.CheckSlices(validators.Limits{V: validators.LimitsVersion, Accuracy: in.Limits.Accuracy,
			Confidence: cmp.Or(in.Limits.Confidence, validators.DefaultConfidence)}, in.Interface); err != nil {
			return err
		}
	}
	if err := warnUnlikely("cases", &in.Cases, in.Interface, in.Imported.Model.Uses()); err != nil || s.Calibration == nil {
		return err
	}
	return in.readCalibration(s, scratch)
}

// readCalibration reads the calibration set, which may share no case with the cases.
func (in *Inputs) readCalibration(s *spec.Spec, scratch string) error {
	var err error
	in.Calibration, err = cases.Read(s.Files,
		s.Calibration.Path.Written, toolchain.RoleCalibration, in.Interface, scratch)
	if err != nil {
		return err
	}
	if err := in.Calibration.Convert(in.Interface, filepath.Join(scratch, "calibration-for-engines")); err != nil {
		return err
	}
	in.Calibration.Files = in.Calibration.Engines() // no framework reads calibration
	if err := warnUnlikely("calibration", &in.Calibration, in.Interface, in.Imported.Model.Uses()); err != nil {
		return err
	}
	if err := in.warnUnlike(); err != nil {
		return err
	}
	if err := cases.CheckApart(in.Cases, in.Calibration, in.Interface); err != nil {
		return err
	}
	if slices.ContainsFunc(s.Variants, spec.Variant.Compressed) {
		in.CalibrationLabels, err = in.Calibration.OptionalLabels(s.Cases.Labels, in.Interface, in.Limits.Accuracy)
	}
	return err
}

// assetInputs names assets by their last component. It refuses an asset that has the name of a
// file of the model, or that is code.
func assetInputs(files specFiles, assets []spec.Path, model []toolchain.Input) ([]toolchain.Input, error) {
	var inputs []toolchain.Input
	taken := make(map[string]bool)
	for _, m := range model {
		taken[m.Name] = true
	}
	for _, asset := range assets {
		name := path.Base(asset.Written)
		if taken[name] {
			return nil, registry.Errorf(registry.CodeInvalid, "assets: two files of the engine would be called %s", name)
		}
		taken[name] = true
		in, err := files.input(asset.Written, roleAsset, name, refuseCode)
		if err != nil {
			return nil, inside("assets", err)
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// roleAsset is that of assets, which no step reads.
const roleAsset = "asset"

// AssetFiles returns the assets as files of a release.
func (in Inputs) AssetFiles() []storage.PartFile {
	files := run.InputFiles(in.Assets)
	for i := range files {
		files[i].Kind = artifact.FileAsset
	}
	return files
}

// OperatorFiles are the libraries of operators, as files of the reference and of each engine.
func (in Inputs) OperatorFiles() []storage.PartFile {
	files := run.InputFiles(in.Operators)
	for i := range files {
		files[i].Kind = artifact.FileCode
	}
	return files
}

// requested lists every target with every variant that is asked of it.
func requested(s *spec.Spec, students map[string]*plan.Student) ([]plan.Requested, error) {
	var engines []plan.Requested
	for _, target := range s.Targets {
		for _, name := range target.Variants {
			variant, ok := s.Variant(name)
			if !ok {
				return nil, registry.Errorf(registry.CodeInvalid,
					"%s: target %s asks for variant %q, which is not defined", s.File, target.Name, name)
			}
			tuning, err := tuningInput(specFiles{s.Files}, target)
			if err != nil {
				return nil, err
			}
			load, err := target.LoadProfile(variant)
			if err != nil {
				return nil, registry.Errorf(registry.CodeOf(err), "%s: target %s, variant %s: %w", s.File, target.Name, name, err)
			}
			engines = append(engines, plan.Requested{Load: load,
				Target: target.Registry(), Variant: variant.Name, Precision: variant.Precision,
				Student: students[variant.Name], Compress: compressOptions(variant), Compressor: compressor(variant),
				Quantize: quantizeOptions(variant.Quantize), Quantizer: quantizer(variant.Quantize), QuantizedInside: quantizedInside(variant.Quantize),
				Toolchain: target.Toolchain.Name, ToolVersion: target.Toolchain.Version,
				Form: target.Toolchain.Form, Providers: target.Toolchain.RegistryProviders(), Tuning: tuning})
		}
	}
	return engines, nil
}

// OpenModel reads an ONNX file that a person named, after the format check.
func OpenModel(file string) (*onnx.Model, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "model: %w", err)
	}
	defer f.Close()
	folder, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "model: %w", err)
	}
	defer folder.Close()
	return readModel(f, folder, false)
}

// Below is the path of a file or folder as a spec at specFile can name it. Errors: CodeInvalid where
// it cannot.
func Below(specFile, file string, isFolder bool) (string, error) {
	folder, err := confined.New(filepath.Dir(specFile), "the folder of the spec")
	if err != nil {
		return "", err
	}
	from, err := filepath.Abs(filepath.Dir(specFile))
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(from, file)
	if err != nil {
		relative = file
	}
	relative = filepath.ToSlash(relative)
	return relative, registry.WithHint(folder.Check(relative, isFolder),
		"a spec names files of its own folder only: write it there with -f %s", filepath.Join(filepath.Dir(file), spec.File))
}
