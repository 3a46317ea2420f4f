"use strict";
// Numbers as people read them.

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// fixed writes a number with 1 or 2 digits behind the point. Where two are equally near, the even one is taken, as the report does: toFixed takes the larger.
function fixed(value, digits) {
  const tie = (value * (digits === 1 ? 4 : 8)) % 2 === 1, scale = 10 ** digits, low = Math.floor(value * scale);
  return (tie && low % 2 === 0 ? low / scale : value).toFixed(digits);
}

// sizeText writes bytes with three digits, as the report does.
function sizeText(bytes) {
  let unit = 0, value = Math.abs(bytes);
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit++;
  }
  if (unit === 0) return (bytes < 0 ? "-" : "") + value + " B";
  let text = fixed(value, value < 10 ? 2 : 1);
  if (Number(text) >= 1024 && unit + 1 < units.length) {
    text = "1.00";
    unit++;
  } else if (text === "10.00") {
    text = "10.0";
  }
  return (bytes < 0 ? "-" : "") + text + " " + units[unit];
}

// changeText writes a difference of bytes with its sign.
const changeText = (bytes) => (bytes > 0 ? "+" : "") + sizeText(bytes);

const countText = (count) => count.toLocaleString("en");

const partText = (bytes, whole) => (whole ? fixed((100 * bytes) / whole, 1) + "%" : "");

// timeText writes nanoseconds with three or four digits, and from a second on to the millisecond, as the report does.
function timeText(ns) {
  if (ns >= 120e9) return Math.floor(ns / 60e9) + " min " + ((ns % 60e9) / 1e9).toFixed(2).padStart(5, "0") + " s";
  if (ns >= 1e9) return (ns / 1e9).toFixed(3) + " s";
  for (const [unit, name] of [[1e6, "ms"], [1e3, "us"]])
    if (Math.abs(ns) >= unit) return (ns / unit).toFixed(ns >= 100 * unit ? 1 : ns >= 10 * unit ? 2 : 3) + " " + name;
  return Math.round(ns) + " ns";
}

// ticks are up to about count round values from 0 to high: 1, 2 or 5 times a power of ten, or for bytes a power of two of a unit.
function ticks(low, high, count, binary) {
  const least = (high - low) / count;
  let width;
  if (binary) {
    width = 1;
    while (width < least) width *= 2;
  } else {
    const power = 10 ** Math.floor(Math.log10(least || 1));
    width = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) || 10 * power;
  }
  const list = [];
  for (let v = Math.ceil(low / width) * width; v <= high; v += width) list.push(v);
  return list;
}

if (typeof module !== "undefined") module.exports = {fixed, sizeText, changeText, countText, partText, timeText, ticks};
