package durable

import (
	"bytes"
	"cmp"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// OpenFile opens a regular file of the folder, without waiting for a FIFO, without
// opening a device and without following a link. New files get the mode 0600. The
// error matches ErrNotRegular or fs.ErrNotExist if that is the cause.
func (f *Folder) OpenFile(name string, flag int) (*os.File, error) {
	file, _, err := f.open(name, flag)
	return file, err
}

// open is OpenFile, and describes the file.
func (f *Folder) open(name string, flag int) (*os.File, fs.FileInfo, error) {
	if err := f.isRegular(name); err != nil {
		return nil, nil, f.fail("open", name, err)
	}
	file, err := f.root.OpenFile(name, flag|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, nil, f.fail("open", name, cmp.Or(f.isRegular(name), err))
	}
	opened, err := file.Stat()
	if err == nil {
		err = notRegular(opened)
	}
	if err == nil {
		// os.Root keeps links inside the folder and follows those; a link from one
		// of our files to another would mix them up.
		err = f.isRegular(name)
	}
	if err != nil {
		file.Close()
		return nil, nil, f.fail("open", name, err)
	}
	return file, opened, nil
}

// isRegular returns ErrNotRegular for a name that is something else. For a missing
// one, opening it returns the error.
func (f *Folder) isRegular(name string) error {
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil
	}
	return notRegular(info)
}

// Stat describes a name without following a link.
func (f *Folder) Stat(name string) (fs.FileInfo, error) { return f.root.Lstat(name) }

// Read returns a file's content, at most limit bytes: a larger file is
// ErrTooLarge.
func (f *Folder) Read(name string, limit int64) ([]byte, error) {
	file, info, err := f.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := readAll(file, info.Size(), limit)
	if err != nil {
		return nil, f.fail("read", name, err)
	}
	return data, nil
}

// readAll reads nothing of a file that is too large, and no more of one that grows.
func readAll(file *os.File, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, ErrTooLarge
	}
	data := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if n, err := data.ReadFrom(io.LimitReader(file, limit+1)); err != nil || n > limit {
		return nil, cmp.Or(err, ErrTooLarge)
	}
	return data.Bytes(), nil
}
