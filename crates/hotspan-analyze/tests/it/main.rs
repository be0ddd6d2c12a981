//! Whole analyses of small traces: against torch's own tables, and against numbers worked out by hand.

#[cfg(test)]
mod advice;
#[cfg(test)]
mod averages;
#[cfg(test)]
mod flops;
#[cfg(test)]
mod gpu;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod idle;
mod job;
#[cfg(test)]
mod kernels;
#[cfg(test)]
mod kineto;
#[cfg(test)]
mod launches;
#[cfg(test)]
mod model;
#[cfg(test)]
mod ranks;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod things;
#[cfg(test)]
mod wall_time;
