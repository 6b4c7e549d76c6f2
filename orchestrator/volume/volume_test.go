package volume

import (
	"path/filepath"
	"testing"
)

// TestAFolderThatIsNotThereYetIsOnItsParentsVolume, and the nearest folder that is there is named.
func TestAFolderThatIsNotThereYetIsOnItsParentsVolume(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there, err := Of(dir)
	if err != nil || there.Total == 0 || there.Free > there.Total || there.ReadOnly {
		t.Fatalf("%+v, %v", there, err)
	}
	if _, err := Of(filepath.Join(dir, "not")); err == nil {
		t.Error("what is not there is on a volume")
	}
	near, at, err := Nearest(filepath.Join(dir, "not", "yet"))
	if err != nil || at != dir || near.Total != there.Total {
		t.Errorf("%+v at %s, %v", near, at, err)
	}
}
