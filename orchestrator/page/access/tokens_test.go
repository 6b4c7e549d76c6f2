package access

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestALinkIsGoodOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := NewKeeper(dir, nil)
	link, _, err := k.Link("phone", Act)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var good atomic.Int32
	var secret atomic.Value
	for range 8 { // several browsers, and several processes, at once
		all.Go(func() {
			if s, made, err := NewKeeper(dir, nil).Redeem(link); err == nil {
				good.Add(1)
				secret.Store(s)
				if made.Name != "phone" || made.Role != Act {
					t.Errorf("%+v", made)
				}
			} else if !errors.Is(err, ErrWrong) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if good.Load() != 1 {
		t.Fatalf("it was good %d times", good.Load())
	}
	s := secret.Load().(string)
	if found, err := k.Find(s); err != nil || found.Name != "phone" {
		t.Errorf("%+v, %v", found, err)
	}
	for _, wrong := range []string{"", link, s[1:], s + "x"} {
		if _, err := k.Find(wrong); !errors.Is(err, ErrNone) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for _, name := range []string{"page/tokens.json", ".page-lock"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		info, bad := os.Stat(filepath.Join(dir, name))
		if err != nil || bad != nil || info.Mode().Perm() != 0o600 || bytes.Contains(text, []byte(s)) || bytes.Contains(text, []byte(link)) {
			t.Errorf("%s: %v %v %v %s", name, err, bad, info.Mode(), text)
		}
	}
	if gone, err := NewKeeper(dir, nil).Revoke(false, "phone"); err != nil || len(gone) != 1 {
		t.Errorf("%v, %v", gone, err)
	}
	if _, err := k.Find(s); !errors.Is(err, ErrNone) {
		t.Errorf("revoked by another process, and found: %v", err)
	}
}

func TestTimeEndsLinksAndTokens(t *testing.T) {
	t.Parallel()
	now := time.Now()
	k := NewKeeper(t.TempDir(), func() time.Time { return now })
	late, _, err := k.Link("", Look)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(LinkLasts)
	if _, _, err := k.Redeem(late); !errors.Is(err, ErrWrong) {
		t.Error(err)
	}
	link, _, err := k.Link("", Look)
	if err != nil {
		t.Fatal(err)
	}
	secret, made, err := k.Redeem(link)
	if err != nil || made.Name != made.ID {
		t.Fatal(made, err)
	}
	now = now.Add(TokenLasts - time.Second)
	if found, err := k.Find(secret); err != nil || !found.Used.Equal(made.Used) {
		t.Errorf("%+v, %v", found, err)
	}
	if all, _, err := k.Tokens(); err != nil || len(all) != 1 || !all[0].Used.Equal(now) {
		t.Errorf("%+v, %v, want used %v", all, err, now)
	}
	now = now.Add(time.Second)
	if _, err := k.Find(secret); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

// TestAUseThatCannotBeWrittenIsNotTriedEachSecond: browsers that follow look each second.
func TestAUseThatCannotBeWrittenIsNotTriedEachSecond(t *testing.T) {
	t.Parallel()
	k, now := NewKeeper(t.TempDir(), nil), time.Now()
	for i, want := range []bool{true, false, true} {
		if got := k.tries("a", now.Add(time.Duration(i)*usedEvery/2)); got != want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// TestADamagedFileLetsNobodyIn: nor does anything else in its place.
func TestADamagedFileLetsNobodyIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := NewKeeper(dir, nil)
	link, _, err := k.Link("", Look)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "page", "tokens.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Redeem(link); err == nil || errors.Is(err, ErrWrong) {
		t.Error(err)
	}
	if _, err := k.Find(link); err == nil || errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

func TestThereIsABoundOfLinks(t *testing.T) {
	t.Parallel()
	k := NewKeeper(t.TempDir(), nil)
	for range mostLinks {
		if _, _, err := k.Link("", Look); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := k.Link("", Look); !errors.Is(err, ErrMany) {
		t.Error(err)
	}
	if gone, err := k.Revoke(true); err != nil || len(gone) != mostLinks {
		t.Error(len(gone), err)
	}
	if _, err := k.Revoke(false, "nobody"); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

func TestTriesAreCountedByAddress(t *testing.T) {
	t.Parallel()
	var all tries
	now := time.Now()
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for range mostTries {
		if many, _ := all.exhausted(a, now); many {
			t.Error("too early")
		}
		all.wrong(a, now)
	}
	if many, after := all.exhausted(a, now); !many || after <= 0 {
		t.Error(many, after)
	}
	if yes, _ := all.exhausted(b, now); yes {
		t.Error("another address may not")
	}
	if yes, _ := all.exhausted(a, now.Add(triesIn)); yes {
		t.Error("not a minute later either")
	}
	six, same := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::ffff:1")
	for range mostTries {
		all.wrong(six, now)
	}
	if yes, _ := all.exhausted(same, now); !yes {
		t.Error("a network has as many tries as addresses")
	}
	for i := range mostAddresses + 100 {
		all.wrong(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
	}
	if len(all.by) > mostAddresses+1 {
		t.Errorf("%d addresses are remembered", len(all.by))
	}
}
