package main

import (
	"encoding/json"
	"reflect"
	"time"
)

// worded returns a copy of what is printed as JSON, in the words that all commands
// share (heartbeat help json): a list is never null, and times are in UTC. Durations
// are numbers of milliseconds, which is for each type to say.
func worded(v any) any {
	if v == nil {
		return nil
	}
	of := reflect.ValueOf(v)
	c := reflect.New(of.Type()).Elem()
	c.Set(of)
	word(c)
	return c.Interface()
}

var (
	timeType      = reflect.TypeFor[time.Time]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
)

// word changes a value in its place; what it points to is copied first.
func word(v reflect.Value) {
	switch {
	case v.Type() == timeType:
		v.Set(reflect.ValueOf(v.Interface().(time.Time).UTC()))
		return
	case v.Type().Implements(marshalerType) && v.Kind() != reflect.Interface:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		wordFields(v)
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			c := reflect.New(v.Elem().Type())
			c.Elem().Set(v.Elem())
			word(c.Elem())
			if v.Kind() == reflect.Interface {
				c = c.Elem()
			}
			v.Set(c)
		}
	case reflect.Slice:
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		v.Set(c)
		wordElements(v)
	case reflect.Array:
		wordElements(v)
	case reflect.Map:
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for key, of := range v.Seq2() {
			e := reflect.New(of.Type()).Elem()
			e.Set(of)
			word(e)
			c.SetMapIndex(key, e)
		}
		v.Set(c)
	}
}

func wordFields(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		if f.CanSet() || v.Type().Field(i).Anonymous && f.Kind() == reflect.Struct {
			word(f)
		}
	}
}

func wordElements(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return
	}
	for i := range v.Len() {
		word(v.Index(i))
	}
}
