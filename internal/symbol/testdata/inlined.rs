// Traits, closures and generics, inlined into each other.
use std::collections::HashMap;

trait Shape {
    fn area(&self) -> f64;
}

struct Square(f64);

impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

#[inline(always)]
fn scaled<F: Fn(f64) -> f64>(x: f64, f: F) -> f64 {
    f(x) + 1.0
}

mod deep {
    #[inline(never)]
    pub fn sum<T: Copy + Into<f64>>(list: &[T]) -> f64 {
        list.iter().map(|x| super::scaled((*x).into(), |y| y * 2.0)).sum()
    }
}

fn main() {
    let shapes: Vec<Box<dyn Shape>> = (0..4).map(|i| Box::new(Square(i as f64)) as Box<dyn Shape>).collect();
    let areas: Vec<f64> = shapes.iter().map(|s| s.area()).collect();
    let mut by_name = HashMap::new();
    by_name.insert("a", deep::sum(&areas));
    by_name.insert("b", deep::sum(&[1.0f32, 2.0]));
    println!("{:?}", by_name.len());
}
