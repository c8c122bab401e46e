package pull

import "mlpromote.dev/mlpromote/registry"

// Inventory names the engine in a folder that Pull made. It compares the files with the manifest and that with the
// record. It judges nothing, since an engine that must not be used is the one to know of. Errors: CodeInvalid if Pull
// did not make the folder; CodeDigest and CodeTrust if it was changed.
func (c Checker) Inventory(dir string) (Record, registry.Ref, error) {
	folder, err := openPulled(dir)
	if err != nil {
		return Record{}, registry.Ref{}, err
	}
	defer folder.root.Close()
	record, err := folder.record()
	if err != nil {
		return Record{}, registry.Ref{}, err
	}
	ref, err := registry.ParseRef(record.Ref)
	if err != nil {
		return Record{}, registry.Ref{}, registry.Errorf(registry.CodeTrust, "%s: its record: %w", dir, err)
	}
	_, err = folder.check(ref.Digest, c.ReadPart)
	return record, ref, err
}
