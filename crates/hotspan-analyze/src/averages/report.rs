//! The operator table as a [`Table`].

use crate::averages::{DeviceKind, KeyAverages};
use crate::report::{Cell, Column, Table};

impl KeyAverages {
    /// How the rows look: every column that has something to say.
    #[must_use]
    pub fn report(&self) -> Table {
        let device = self.use_device.map_or("Device", DeviceKind::title);
        let any = |test: fn(&crate::Average) -> bool| self.rows.iter().any(test);
        let with_device = any(|row| row.self_device_time_total.0 > 0);
        let with_device_memory = any(|row| row.self_device_memory_usage.0 != 0);
        let with_flops = any(|row| row.flops > 0);
        let with_overload = any(|row| !row.overload_name.is_empty());
        let with_shapes = any(|row| row.input_shapes.as_ref().is_some_and(|shapes| !shapes.is_empty()));
        let with_stack = any(|row| !row.stack.is_empty());
        let (with_module, with_thread) = (any(|row| row.module.is_some()), any(|row| row.thread.is_some()));
        let with_index = any(|row| row.device_index.is_some());
        let (cpu_sum, device_sum) = (self.self_cpu_time_total(), self.self_device_time_total());

        let mut table = Table::new("Operators");
        let mut add = |wanted: bool, column: Column, cell: &dyn Fn(&crate::Average) -> Cell| {
            if wanted {
                table.add_column(column, self.rows.iter().map(cell));
            }
        };
        add(true, Column::text("name", "Name"), &|row| Cell::text(&row.key));
        add(with_overload, Column::text("overload_name", "Overload Name"), &|row| {
            Cell::text(&row.overload_name)
        });
        add(true, Column::text("device", "Device"), &|row| Cell::text(row.device.title()));
        add(with_index, Column::count("device_index", "Device Index"), &|row| {
            row.device_index.map_or(Cell::Missing, |index| Cell::Text(index.to_string()))
        });
        add(with_thread, Column::text("thread", "Thread"), &|row| {
            row.thread.as_deref().map_or(Cell::Missing, Cell::text)
        });
        add(true, Column::percent("self_cpu_percent", "Self CPU %"), &|row| {
            Cell::share(row.self_cpu_time_total, cpu_sum)
        });
        add(true, Column::duration("self_cpu_time_total", "Self CPU"), &|row| {
            Cell::Duration(row.self_cpu_time_total)
        });
        add(true, Column::duration("cpu_time_total", "CPU total"), &|row| Cell::Duration(row.cpu_time_total));
        add(with_device, Column::duration("self_device_time_total", &format!("Self {device}")), &|row| {
            Cell::Duration(row.self_device_time_total)
        });
        add(with_device, Column::percent("self_device_percent", &format!("Self {device} %")), &|row| {
            Cell::share(row.self_device_time_total, device_sum)
        });
        add(with_device, Column::duration("device_time_total", &format!("{device} total")), &|row| {
            Cell::Duration(row.device_time_total)
        });
        add(self.profile_memory, Column::bytes("cpu_memory_usage", "CPU Mem"), &|row| {
            Cell::Bytes(row.cpu_memory_usage)
        });
        add(self.profile_memory, Column::bytes("self_cpu_memory_usage", "Self CPU Mem"), &|row| {
            Cell::Bytes(row.self_cpu_memory_usage)
        });
        add(with_device_memory, Column::bytes("device_memory_usage", &format!("{device} Mem")), &|row| {
            Cell::Bytes(row.device_memory_usage)
        });
        add(
            with_device_memory,
            Column::bytes("self_device_memory_usage", &format!("Self {device} Mem")),
            &|row| Cell::Bytes(row.self_device_memory_usage),
        );
        add(true, Column::count("count", "# of Calls"), &|row| Cell::Count(row.count));
        add(true, Column::duration("min", "Min"), &|row| Cell::Duration(row.calls.min));
        add(true, Column::duration("p50", "p50"), &|row| Cell::Duration(row.calls.p50));
        add(true, Column::duration("p99", "p99"), &|row| Cell::Duration(row.calls.p99));
        add(true, Column::duration("max", "Max"), &|row| Cell::Duration(row.calls.max));
        add(true, Column::percent("wall_percent", "Wall %"), &|row| {
            Cell::share(row.own_time_total(), self.wall_time)
        });
        add(with_flops, Column::count("flops", "FLOPs"), &|row| {
            if row.flops == 0 { Cell::Missing } else { Cell::Count(row.flops) }
        });
        add(with_flops, Column::number("flops_per_second", "FLOP/s"), &|row| {
            row.flops_per_second().map_or(Cell::Missing, Cell::Number)
        });
        add(with_shapes, Column::text("input_shapes", "Input Shapes"), &|row| {
            row.input_shapes.as_ref().map_or(Cell::Missing, |shapes| Cell::Text(format!("{shapes:?}")))
        });
        add(with_module, Column::text("module", "Module"), &|row| {
            row.module.as_deref().map_or(Cell::Missing, Cell::text)
        });
        add(with_stack, Column::text("stack", "Source Location"), &|row| Cell::Text(row.stack.join("; ")));
        table
    }
}
